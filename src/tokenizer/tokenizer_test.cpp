#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/models/sentencepiece_text.h"
#include "tokenizer/models/word_cache.h"
#include "tokenizer/text_cut.h"
#include "tokenizer/text_pass.h"

namespace muster {
namespace {

using Ids = std::vector<TokenId>;

// [CLS]=2, [SEP]=3 around the text; "hello", "world", and their letters are left out on purpose.
constexpr std::string_view kBert = R"({
  "added_tokens": [
    {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false,
     "normalized": false, "special": true},
    {"id": 9, "content": "[NEW]", "single_word": false, "lstrip": true, "rstrip": false,
     "normalized": false, "special": false}],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                 "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "hello": 4, "world": 5,
                      "!": 6, "##s": 7}}})";

struct Outcome {
  Ids ids;
  Tokenizer::Encoded encoded;
};

Outcome encode(std::string_view text, std::uint32_t length_max = 1000) {
  const auto tokenizer = Tokenizer::parse(kBert);
  EXPECT_TRUE(tokenizer);
  Outcome outcome;
  outcome.encoded =
      (*tokenizer)->encode(text, length_max, *(*tokenizer)->make_scratch(), outcome.ids);
  return outcome;
}

TEST(Tokenizer, EncodesWithSpecialTokens) {
  EXPECT_EQ(encode("Héllo  Worlds! x").ids, (Ids{2, 4, 5, 7, 6, 1, 3}));
  EXPECT_EQ(encode("").ids, (Ids{2, 3}));
  EXPECT_EQ(encode(" \n").ids, (Ids{2, 3}));
}

TEST(Tokenizer, FindsAddedTokensInTheText) {
  // "[NEW]" is not in the vocabulary of 8, so its id is 8, whatever the file says.
  EXPECT_EQ(encode("hello  [NEW]world[CLS]").ids, (Ids{2, 4, 8, 5, 2, 3}));
  EXPECT_EQ(encode("[new]").ids, (Ids{2, 1, 1, 1, 3}));
}

TEST(Tokenizer, CutsAtTheRightAndSaysSo) {
  const auto whole = encode("hello world !", 5);
  EXPECT_EQ(whole.ids, (Ids{2, 4, 5, 6, 3}));
  EXPECT_FALSE(whole.encoded.is_truncated);
  EXPECT_EQ(whole.encoded.token_count, 5U);

  const auto cut = encode("hello world !", 4);
  EXPECT_EQ(cut.ids, (Ids{2, 4, 5, 3}));
  EXPECT_TRUE(cut.encoded.is_truncated);
  EXPECT_EQ(cut.encoded.token_count, 4U);

  EXPECT_EQ(encode("worldsss", 4).ids, (Ids{2, 5, 7, 3}));  // within a word
  EXPECT_EQ(encode("hello", 2).ids, (Ids{2, 3}));
  EXPECT_FALSE(encode(" ", 2).encoded.is_truncated);
}

TEST(Tokenizer, CutsALongTextToItsBeginning) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) {
    text += "hello world! ";
  }
  const auto outcome = encode(text, 8);
  EXPECT_EQ(outcome.ids, (Ids{2, 4, 5, 6, 4, 5, 6, 3}));
  EXPECT_TRUE(outcome.encoded.is_truncated);
  EXPECT_EQ(encode(text, 1'000'000).encoded.token_count, 150'002U);
}

TEST(Tokenizer, AppendsToWhatIsThere) {
  const auto tokenizer = Tokenizer::parse(kBert);
  ASSERT_TRUE(tokenizer);
  const auto scratch = (*tokenizer)->make_scratch();
  Ids ids = {99};
  EXPECT_EQ((*tokenizer)->encode("hello world", 3, *scratch, ids).token_count, 3U);
  EXPECT_EQ((*tokenizer)->encode("hello world", 9, *scratch, ids).token_count, 4U);
  EXPECT_EQ(ids, (Ids{99, 2, 4, 3, 2, 4, 5, 3}));
}

// "aa" is 257, "a" 256, and every byte has a token of six characters: no id stands for more bytes.
std::unique_ptr<const Tokenizer> of_bytes(const std::string& pre_tokenizer) {
  std::string vocabulary;
  for (unsigned byte = 0; byte < 256; ++byte) {
    vocabulary +=
        '"' + byte_token(static_cast<std::uint8_t>(byte)) + "\":" + std::to_string(byte) + ',';
  }
  auto tokenizer = Tokenizer::parse("{" + pre_tokenizer +
                                    R"("model":{"type":"BPE","byte_fallback":true,"vocab":{)" +
                                    vocabulary + R"("a":256,"aa":257},"merges":["a a"]}})");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *std::move(tokenizer);
}

TEST(Tokenizer, CutsNoWordThatHasTooManyIdsByItsLengthAlone) {
  const auto tokenizer = of_bytes("");
  const std::string text(6000, 'a');
  const auto scratch = tokenizer->make_scratch();
  // 6000 bytes are 1000 ids at least.
  EXPECT_FALSE(tokenizer->encode_whole(text, 999, false, *scratch));
  EXPECT_EQ(scratch->model.symbols.capacity(), 0U);
  EXPECT_EQ(scratch->pieces.list().capacity(), 0U);
  // They may be 1000, and are 3000.
  EXPECT_FALSE(tokenizer->encode_whole(text, 1000, false, *scratch));
  EXPECT_EQ(scratch->model.symbols.size(), 6000U);
  EXPECT_FALSE(tokenizer->encode_whole(text, 2999, false, *scratch));
  EXPECT_EQ(tokenizer->encode_whole(text, 3000, false, *scratch), Ids(3000, 257));
  // Whoever wants the first ids gets them all the same.
  Ids ids;
  EXPECT_TRUE(tokenizer->encode_content(text, 2, *scratch, ids).is_truncated);
  EXPECT_EQ(ids, (Ids{257, 257}));
}

TEST(Tokenizer, SplitsNoTextThatHasTooManyIdsByItsLengthAlone) {
  const auto split_at = [](const std::string& delimiter, const std::string& behavior) {
    return R"("pre_tokenizer":{"type":"Split","pattern":{"String":")" + delimiter +
           R"("},"behavior":")" + behavior + R"(","invert":false},)";
  };
  const std::string text(6000, 'a');
  const auto keeping = of_bytes(split_at("a", "Isolated"));
  const auto scratch = keeping->make_scratch();
  EXPECT_FALSE(keeping->encode_whole(text, 999, false, *scratch));
  EXPECT_EQ(scratch->pieces.list().capacity(), 0U);
  EXPECT_EQ(keeping->encode_whole(text, 6000, false, *scratch), Ids(6000, 256));
  // What is taken out of a text has no ids, however long it is, and a word is looked at alone.
  const auto removing = of_bytes(split_at("b", "Removed"));
  const auto other = removing->make_scratch();
  EXPECT_EQ(removing->encode_whole(std::string(6000, 'b') + 'a', 5, false, *other), Ids{256});
  EXPECT_FALSE(removing->encode_whole(text, 999, false, *other));
  EXPECT_LT(other->model.symbols.capacity(), 1000U);
}

TEST(Tokenizer, DecodesWithAndWithoutSpecialTokens) {
  const auto tokenizer = Tokenizer::parse(kBert);
  ASSERT_TRUE(tokenizer);
  const Ids ids = {2, 4, 7, 6, 8, 77};
  EXPECT_EQ((*tokenizer)->decode(ids, false), "[CLS] hellos! [NEW]");
  // What is special is told by the text: [SEP] is not among the added tokens here.
  EXPECT_EQ((*tokenizer)->decode(Ids{2, 4, 3}, true), "hello [SEP]");
  EXPECT_EQ((*tokenizer)->decode(Ids{}, false), "");
}

TEST(Tokenizer, JoinsBySpacesWithoutADecoder) {
  const auto tokenizer = Tokenizer::parse(R"({"model":{"vocab":{"a":0,"b":1},"merges":[]}})");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->decode(Ids{0, 1}, true), "a b");
}

TEST(Tokenizer, KnowsItsSizes) {
  const auto tokenizer = Tokenizer::parse(kBert);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->special_token_count(), 2U);
  EXPECT_EQ((*tokenizer)->vocab_size(), 9U);
}

TEST(Tokenizer, NamesAFileThatIsNotThere) {
  const auto tokenizer = Tokenizer::load("/nonexistent/tokenizer.json");
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().kind, ErrorKind::NotFound);
}

TEST(LastCut, IsBeforeASpaceBetweenSolidCharacters) {
  const CutRules spaces{.before_space = true};
  EXPECT_EQ(last_cut("ab cd ef", 0, 8, spaces), 5U);
  EXPECT_EQ(last_cut("ab cd ef", 0, 6, spaces), 2U);  // 'e' is not within the bound
  EXPECT_EQ(last_cut("ab  cd", 0, 6, spaces), 0U);
  EXPECT_EQ(last_cut("ab\n cd", 0, 6, spaces), 0U);
  EXPECT_EQ(last_cut("да да", 0, 9, spaces), 4U);
  EXPECT_EQ(last_cut("да да", 0, 6, spaces), 0U);
  EXPECT_EQ(last_cut(" a", 0, 2, spaces), 0U);
  EXPECT_EQ(last_cut("a \xCC\x81", 0, 4, spaces), 0U);  // a mark belongs to the space
  EXPECT_EQ(last_cut("ab cd", 0, 5, {}), 0U);
}

TEST(LastCut, IsBeforeALineFeedBehindALetter) {
  const CutRules lines{.before_line_feed = true};
  EXPECT_EQ(last_cut("ab\ncd ef", 0, 8, lines), 2U);
  EXPECT_EQ(last_cut("ab\n!", 0, 4, lines), 2U);
  EXPECT_EQ(last_cut("a!\nb", 0, 4, lines), 0U);
  EXPECT_EQ(last_cut("a\r\nb", 0, 4, lines), 0U);
}

TEST(LastCut, IsBeforeAChineseCharacterWhereThatIsAllowed) {
  const CutRules rules{.before_space = true, .before_chinese = true};
  EXPECT_EQ(last_cut("中文字", 0, 9, rules), 6U);
  EXPECT_EQ(last_cut("中文字", 0, 8, rules), 3U);
  EXPECT_EQ(last_cut("かな", 0, 6, rules), 0U);
}

TEST(WordCache, OfASmallTextKeepsAWordOfIt) {
  for (const std::size_t text_bytes : {0, 1, 9, 4096}) {
    SCOPED_TRACE(text_bytes);
    WordCache cache(text_bytes);
    Ids ids;
    for (TokenId i = 0; i < 5000; ++i) cache.keep(std::to_string(i), Ids{i});
    EXPECT_TRUE(cache.append("4999", ids));
    EXPECT_EQ(ids, Ids{4999});
    EXPECT_FALSE(cache.append("0", ids));
  }
}

TEST(WordCache, KeepsShortWordsAndForgetsSome) {
  WordCache cache;
  Ids ids;
  EXPECT_FALSE(cache.append("word", ids));
  cache.keep("word", Ids{1, 2});
  EXPECT_TRUE(cache.append("word", ids));
  EXPECT_EQ(ids, (Ids{1, 2}));
  EXPECT_FALSE(cache.append("wore", ids));

  const std::string long_word(23, 'x');
  cache.keep(long_word, Ids{1});
  EXPECT_FALSE(cache.append(long_word, ids));
  cache.keep("many", Ids(9, 1));
  EXPECT_FALSE(cache.append("many", ids));

  for (TokenId i = 0; i < 200'000; ++i) {
    cache.keep(std::to_string(i), Ids{i});
  }
  ids.clear();
  EXPECT_TRUE(cache.append("199999", ids));
  EXPECT_EQ(ids, Ids{199'999});
}

}  // namespace
}  // namespace muster
