#include "jobs/text_encoding.h"

#include <gtest/gtest.h>

#include <random>

namespace muster {
namespace {

std::unique_ptr<const Tokenizer> tokenizer_of(const std::string& name) {
  return *Tokenizer::load(std::string(MUSTER_SOURCE_DIR) + "/src/tokenizer/testdata/" + name +
                          "/tokenizer.json");
}

// Ids as langchain-openai sends them: of cl100k, whose vocabulary has 100,277. Some lists are of
// ids that this model has, too.
TEST(ForeignIds, ThoseOfAnotherTokenizerAreAlwaysTold) {
  std::mt19937 random(5);
  for (const std::string name : {"bert_uncased", "mpnet", "roberta", "xlm_roberta", "t5"}) {
    const auto tokenizer = tokenizer_of(name);
    const auto vocab_size = tokenizer->vocab_size();
    for (int round = 0; round < 10'000; ++round) {
      const std::uint32_t end = round % 2 == 0 ? 100'277 : vocab_size;
      std::vector<TokenId> ids(1 + random() % 300);
      for (auto& id : ids) id = static_cast<TokenId>(random() % end);
      ids.back() = 13;  // a full stop in cl100k
      ASSERT_TRUE(foreign_ids(*tokenizer, vocab_size, ids)) << name;
    }
  }
}

TEST(ForeignIds, ThoseOfTheModelsOwnAreNot) {
  for (const std::string name : {"bert_uncased", "mpnet", "roberta", "xlm_roberta", "t5", "gpt2",
                                 "llama3", "added_tokens"}) {
    const auto tokenizer = tokenizer_of(name);
    const auto scratch = tokenizer->make_scratch();
    for (const std::string text : {"", "a", "Some words, and more of them."}) {
      std::vector<TokenId> ids;
      tokenizer->encode(text, 12, *scratch, ids);
      if (ids.empty()) continue;  // gpt2 has no special tokens
      EXPECT_EQ(foreign_ids(*tokenizer, tokenizer->vocab_size(), ids), std::nullopt) << name;
    }
  }
}

// Without special tokens only an id that the model does not have tells.
TEST(ForeignIds, WithoutSpecialTokensTheRangeIsAllThatTells) {
  const auto tokenizer = tokenizer_of("gpt2");
  ASSERT_EQ(tokenizer->special_token_count(), 0U);
  EXPECT_FALSE(foreign_ids(*tokenizer, tokenizer->vocab_size(), {1, 2, 3}));
  EXPECT_TRUE(foreign_ids(*tokenizer, tokenizer->vocab_size(), {1, tokenizer->vocab_size()}));
}

}  // namespace
}  // namespace muster
