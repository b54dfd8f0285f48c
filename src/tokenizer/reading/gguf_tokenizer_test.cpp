#include "tokenizer/reading/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tokenizer/models/sentencepiece_text.h"
#include "tokenizer/reading/gguf_pre_tokenizers.h"
#include "tokenizer/split/byte_alphabet.h"
#include "tokenizer/utf8.h"

// Whole files are held against llama.cpp in src/chat (decoder_text_test.cpp); here are the rules.

namespace muster {
namespace {

using Ids = std::vector<TokenId>;

/// The lists of a file; the texts stay here.
class GgufTokenizerTest : public testing::Test {
 protected:
  /// Byte-level: the 256 bytes, then `more` as they are written in a file.
  GgufTokens byte_level(const std::string& pre, const std::vector<std::string>& more,
                        const std::vector<std::string>& merges) {
    texts_.clear();
    for (const auto character : kByteCharacters) append_utf8(character, texts_.emplace_back());
    texts_.insert(texts_.end(), more.begin(), more.end());
    merges_ = merges;
    GgufTokens tokens = of_texts("gpt2");
    tokens.pre = pre;
    tokens.merges.assign(merges_.begin(), merges_.end());
    return tokens;
  }

  /// SentencePiece: <unk>, <s>, </s>, the 256 byte tokens, then `more` with their scores.
  GgufTokens sentencepiece(const std::vector<std::pair<std::string, float>>& more) {
    texts_ = {"<unk>", "<s>", "</s>"};
    for (unsigned byte = 0; byte < 256; ++byte) {
      texts_.push_back(byte_token(static_cast<std::uint8_t>(byte)));
    }
    for (const auto& [text, score] : more) texts_.push_back(text);
    GgufTokens tokens = of_texts("llama");
    tokens.scores.assign(texts_.size(), 0);
    for (std::size_t i = 0; i < more.size(); ++i) tokens.scores[kFirst + i] = more[i].second;
    tokens.types[0] = GgufTokenType::Unknown;
    tokens.types[1] = tokens.types[2] = GgufTokenType::Control;
    tokens.unknown_id = 0;
    tokens.bos_id = 1;
    tokens.eos_id = 2;
    return tokens;
  }
  static constexpr TokenId kFirst = 259;

  static Ids encode(const GgufTokens& tokens, const std::string& text) {
    const auto tokenizer = make_gguf_tokenizer(tokens);
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    if (!tokenizer) return {};
    const auto scratch = (*tokenizer)->make_scratch();
    Ids ids;
    (*tokenizer)->encode(text, 1000, *scratch, ids);
    return ids;
  }

  static std::string error_of(const GgufTokens& tokens) {
    const auto tokenizer = make_gguf_tokenizer(tokens);
    EXPECT_FALSE(tokenizer);
    return tokenizer ? std::string() : tokenizer.error().message;
  }

 private:
  GgufTokens of_texts(const std::string& model) {
    GgufTokens tokens;
    tokens.model = model;
    tokens.tokens.assign(texts_.begin(), texts_.end());
    tokens.types.assign(texts_.size(), GgufTokenType::Normal);
    return tokens;
  }

  std::vector<std::string> texts_;
  std::vector<std::string> merges_;
};

TEST_F(GgufTokenizerTest, ByteLevelMergesByRankWithinWords) {
  const auto tokens = byte_level("gpt-2", {"ab", "Ġa"}, {"a b", "Ġ a"});
  EXPECT_EQ(encode(tokens, "ab ab"), (Ids{256, ' ', 256}));  // "a b" has the lower rank
  EXPECT_EQ(encode(tokens, "b a"), (Ids{'b', 257}));
}

TEST_F(GgufTokenizerTest, EachDigitIsAWordWhereTheNameSaysSo) {
  const std::vector<std::string> more{"12"};
  EXPECT_EQ(encode(byte_level("gpt-2", more, {"1 2"}), "12"), Ids{256});
  for (const auto* pre : {"smollm", "qwen2", "starcoder"}) {
    EXPECT_EQ(encode(byte_level(pre, more, {"1 2"}), "12"), (Ids{'1', '2'})) << pre;
  }
}

TEST_F(GgufTokenizerTest, AWholeWordIsATokenWithoutMergesWhereTheNameSaysSo) {
  auto tokens = byte_level("llama-bpe", {"ab", "abc"}, {"a b"});
  tokens.bos_id = 'x';
  EXPECT_EQ(encode(tokens, "abc"), (Ids{'x', 257}));  // and BOS is added
  tokens.adds_bos = false;
  EXPECT_EQ(encode(tokens, "abc"), Ids{257});
  EXPECT_EQ(encode(byte_level("gpt-2", {"ab", "abc"}, {"a b"}), "abc"), (Ids{256, 'c'}));
}

TEST_F(GgufTokenizerTest, SpecialTokensAreFoundByTheirType) {
  auto tokens = byte_level("gpt-2", {"<|x|>", "<|y|>"}, {"a b", "Ġ a"});
  tokens.merges.clear();
  tokens.merges.emplace_back("< |");  // of a list that is not empty; "<|" is no token
  EXPECT_EQ(error_of(tokens), "the file's tokenizer: a merged token is not in the vocabulary: <|");

  tokens = byte_level("gpt-2", {"ab", "<|x|>", "<|y|>"}, {"a b"});
  tokens.types[257] = GgufTokenType::Control;
  tokens.types[258] = GgufTokenType::UserDefined;
  EXPECT_EQ(encode(tokens, "a<|x|>b<|y|>"), (Ids{'a', 257, 'b', 258}));
  const auto tokenizer = make_gguf_tokenizer(tokens);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->decode(Ids{'a', 257, 258}, true), "a<|y|>");
}

TEST_F(GgufTokenizerTest, ScoresSayWhatMergesFirst) {
  // "abc": "bc" has the higher score, so "ab" never forms; then "a" and "bc" have no token.
  const auto tokens =
      sentencepiece({{"▁", -9}, {"a", -9}, {"b", -9}, {"c", -9}, {"ab", -2}, {"bc", -1}});
  EXPECT_EQ(encode(tokens, "abc"), (Ids{1, kFirst, kFirst + 1, kFirst + 5}));
  // Equal scores: the leftmost.
  const auto equal =
      sentencepiece({{"▁", -9}, {"a", -9}, {"b", -9}, {"c", -9}, {"ab", -1}, {"bc", -1}});
  EXPECT_EQ(encode(equal, "abc"), (Ids{1, kFirst, kFirst + 4, kFirst + 3}));
}

TEST_F(GgufTokenizerTest, CharactersWithoutATokenAreBytes) {
  const auto tokens = sentencepiece({{"▁", -1}, {"a", -1}, {"▁a", -0.5F}});
  EXPECT_EQ(encode(tokens, "a\né"), (Ids{1, kFirst + 2, 3 + 0x0A, 3 + 0xC3, 3 + 0xA9}));
}

TEST_F(GgufTokenizerTest, AMarkStandsBeforeTheTextAndBehindSpecialTokens) {
  auto tokens = sentencepiece({{"▁", -1}, {"a", -1}, {"▁a", -0.5F}, {"▁▁", -0.7F}});
  EXPECT_EQ(encode(tokens, "a</s>a"), (Ids{1, kFirst + 2, 2, kFirst + 2}));
  EXPECT_EQ(encode(tokens, "a  a"), (Ids{1, kFirst + 2, kFirst, kFirst + 2}));
  tokens.adds_space_prefix = false;
  EXPECT_EQ(encode(tokens, "a  a"), (Ids{1, kFirst + 1, kFirst, kFirst + 2}));
  tokens.adds_eos = true;
  EXPECT_EQ(encode(tokens, "a"), (Ids{1, kFirst + 1, 2}));
}

TEST_F(GgufTokenizerTest, RunsOfMarksBeginWordsOnlyWhereNoTokenCrossesThem) {
  // "a▁" is a token: split before the mark it would never be found.
  const auto tokens = sentencepiece({{"▁", -1}, {"a", -1}, {"b", -1}, {"a▁", -0.5F}});
  EXPECT_EQ(encode(tokens, "a b"), (Ids{1, kFirst, kFirst + 3, kFirst + 2}));
}

TEST_F(GgufTokenizerTest, EveryNameOfAPreTokenizerIsReady) {
  for (const auto name : known_gguf_pre_tokenizers()) {
    const auto found = find_gguf_pre_tokenizer(name);
    EXPECT_TRUE(found) << name << ": " << found.error().message;
  }
  EXPECT_TRUE(find_gguf_pre_tokenizer(""));
}

TEST_F(GgufTokenizerTest, WhatIsNotKnownOrDoesNotFitIsRefusedByName) {
  const auto good = byte_level("gpt-2", {"ab"}, {"a b"});
  auto tokens = good;
  tokens.pre = "smolm";
  EXPECT_EQ(error_of(tokens), "tokenizer.ggml.pre is not known: \"smolm\"; the nearest is smollm");
  tokens = good;
  tokens.model = "bert";
  EXPECT_EQ(error_of(tokens),
            "tokenizer.ggml.model is not known: \"bert\" (known are gpt2 and llama)");
  tokens = good;
  tokens.merges.clear();
  EXPECT_EQ(error_of(tokens), "tokenizer.ggml.merges is missing");
  tokens.merges.emplace_back("ab");
  EXPECT_EQ(error_of(tokens), "tokenizer.ggml.merges holds a line that is not two tokens: \"ab\"");
  tokens = good;
  tokens.tokens.push_back("ab");
  EXPECT_EQ(error_of(tokens), "tokenizer.ggml.tokens holds one text twice: ids 256 and 257");
  tokens.tokens.back() = "a\xF0";
  EXPECT_EQ(error_of(tokens), "tokenizer.ggml.tokens holds a text that is not UTF-8: id 257");
  tokens = good;
  tokens.adds_bos = true;
  EXPECT_EQ(error_of(tokens), "tokenizer.ggml.bos_token_id is missing, and the tokenizer adds it");
  tokens = sentencepiece({{"a", -1}});
  tokens.scores.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of(tokens), "tokenizer.ggml.scores holds a number that is not finite");
  tokens.scores.clear();
  EXPECT_EQ(error_of(tokens), "tokenizer.ggml.scores is missing");
}

}  // namespace
}  // namespace muster
