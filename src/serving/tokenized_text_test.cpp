#include "serving/tokenized_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// Its vocabulary: [CLS] is 2, [SEP] 3, a 5, ##b 8.
std::unique_ptr<const Tokenizer> tiny_tokenizer() {
  return *Tokenizer::load(std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny/tokenizer.json");
}

TEST(TokenizedText, SpecialTokensAroundATextCanBeLeftOut) {
  const auto tokenizer = tiny_tokenizer();
  const auto text =
      tokenized_text(*tokenizer, {.ids = {2, 5, 8, 3}}, {.has_special_tokens = false});
  EXPECT_EQ(text.ids, (std::vector<TokenId>{5, 8}));
  EXPECT_TRUE(text.pieces.empty());
}

TEST(TokenizedText, PiecesTellWhatEachTokenStandsFor) {
  const auto tokenizer = tiny_tokenizer();
  const auto text =
      tokenized_text(*tokenizer, {.ids = {2, 5, 3}, .is_truncated = true}, {.wants_pieces = true});
  EXPECT_TRUE(text.is_truncated);
  ASSERT_EQ(text.pieces.size(), 3U);
  EXPECT_EQ(text.pieces[0].text, "[CLS]");
  EXPECT_TRUE(text.pieces[0].is_special);
  EXPECT_EQ(text.pieces[1].text, "a");
  EXPECT_FALSE(text.pieces[1].is_special);
}

}  // namespace
}  // namespace muster
