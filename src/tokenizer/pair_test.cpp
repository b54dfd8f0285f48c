// The fixtures are made by tools/fixtures/tokenizer_oracle.py with Hugging Face tokenizers 0.23.3.

#include <gtest/gtest.h>
#include <simdjson.h>

#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_time.h"
#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

using Ids = std::vector<TokenId>;

constexpr std::string_view kFolder = MUSTER_SOURCE_DIR "/src/tokenizer/testdata/";

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

Ids ids_of(const simdjson::dom::element& list) {
  Ids ids;
  for (const std::uint64_t id : list.get_array()) ids.push_back(static_cast<TokenId>(id));
  return ids;
}

class PairOracle : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::load(std::string(kFolder) + GetParam() + "/tokenizer.json");
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    tokenizer_ = *std::move(tokenizer);
    for (const auto& line : lines_of(std::string(kFolder) + "texts.jsonl")) {
      texts_.emplace_back(parser_.parse(line).at_key("text").get_string().value());
    }
    rows_ = lines_of(std::string(kFolder) + GetParam() + "/pairs.jsonl");
    ASSERT_EQ(rows_.size(), 200U);
  }

  simdjson::dom::parser parser_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> texts_;
  std::vector<std::string> rows_;
};

TEST_P(PairOracle, GivesTheLibrarysPairs) {
  ASSERT_TRUE(tokenizer_->encodes_pairs());
  const auto scratch = tokenizer_->make_scratch();
  for (const auto& line : rows_) {
    SCOPED_TRACE(line);
    const simdjson::dom::element row = parser_.parse(line);
    Ids ids{7};  // what is there stays
    const auto encoded = tokenizer_->encode_pair(
        texts_.at(row["first"].get_uint64()), texts_.at(row["second"].get_uint64()),
        static_cast<std::uint32_t>(row["length_max"].get_uint64()), *scratch, ids);
    ids.erase(ids.begin());
    ASSERT_EQ(ids, ids_of(row["ids"]));
    ASSERT_EQ(encoded.token_count, ids.size());
    ASSERT_EQ(encoded.first_segment, row["first_segment"].get_uint64().value());
  }
}

// The first texts stay from pair to pair, whatever the lengths they are cut to.
TEST_P(PairOracle, GivesTheSamePairsWithTheFirstTextReadOnce) {
  const auto scratch = tokenizer_->make_scratch();
  std::map<std::uint64_t, Tokenizer::FirstOfPairs> firsts;
  for (const auto& line : rows_) {
    SCOPED_TRACE(line);
    const simdjson::dom::element row = parser_.parse(line);
    const auto index = row["first"].get_uint64().value();
    auto& first = firsts.try_emplace(index, texts_.at(index)).first->second;
    for (const auto& second : {std::string(), texts_.at(row["second"].get_uint64())}) {
      for (std::uint32_t more = 0; more < 4; ++more) {
        const auto length_max = static_cast<std::uint32_t>(row["length_max"].get_uint64()) + more;
        Ids once;
        Ids anew;
        const auto kept = tokenizer_->encode_pair(first, second, length_max, *scratch, once);
        const auto whole =
            tokenizer_->encode_pair(first.text(), second, length_max, *scratch, anew);
        ASSERT_EQ(once, anew);
        ASSERT_EQ(kept.first_segment, whole.first_segment);
        ASSERT_EQ(kept.is_truncated, whole.is_truncated);
      }
    }
  }
}

TEST_P(PairOracle, CutsAtTheLeftAsTheLibraryDoes) {
  const auto scratch = tokenizer_->make_scratch();
  for (const auto& line : rows_) {
    SCOPED_TRACE(line);
    const simdjson::dom::element row = parser_.parse(line);
    Ids ids{7};
    tokenizer_->encode(texts_.at(row["first"].get_uint64()),
                       static_cast<std::uint32_t>(row["left_max"].get_uint64()), *scratch, ids,
                       TruncationSide::Left);
    ids.erase(ids.begin());
    ASSERT_EQ(ids, ids_of(row["left_ids"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, PairOracle,
                         testing::Values("bert_uncased", "bert_cased", "mpnet", "roberta", "gpt2",
                                         "llama3", "qwen2", "gpt4o", "clip", "added_tokens",
                                         "xlm_roberta", "t5", "albert", "unigram_bytes"),
                         [](const auto& tested) { return tested.param; });

// A letter a token: a = 0, b = 1, ... [CLS] = 4, [SEP] = 5.
std::string letters(const std::string& post_processor) {
  return R"({"pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordPiece", "unk_token": "a", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "[CLS]": 4, "[SEP]": 5}},
    "post_processor": )" +
         post_processor + "}";
}

constexpr const char* kBert =
    R"({"type": "BertProcessing", "sep": ["[SEP]", 5], "cls": ["[CLS]", 4]})";

struct Outcome {
  Ids ids;
  Tokenizer::EncodedPair encoded;
};

Outcome encode_pair(const std::string& post_processor, std::string_view first,
                    std::string_view second, std::uint32_t length_max) {
  const auto tokenizer = Tokenizer::parse(letters(post_processor));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  Outcome outcome;
  outcome.encoded =
      (*tokenizer)
          ->encode_pair(first, second, length_max, *(*tokenizer)->make_scratch(), outcome.ids);
  return outcome;
}

TEST(TokenizerPair, BertNumbersTheSegmentsAndRobertaDoesNot) {
  const auto bert = encode_pair(kBert, "a b", "c", 9);
  EXPECT_EQ(bert.ids, (Ids{4, 0, 1, 5, 2, 5}));
  EXPECT_EQ(bert.encoded.first_segment, 4U);
  EXPECT_FALSE(bert.encoded.is_truncated);
  const auto roberta =
      encode_pair(R"({"type": "RobertaProcessing", "sep": ["[SEP]", 5], "cls": ["[CLS]", 4],
                      "trim_offsets": true, "add_prefix_space": true})",
                  "a b", "c", 9);
  EXPECT_EQ(roberta.ids, (Ids{4, 0, 1, 5, 5, 2, 5}));
  EXPECT_EQ(roberta.encoded.first_segment, 7U);
}

TEST(TokenizerPair, TheLongerTextIsCutFirst) {
  // Room for 4 beside three special tokens: a query of one leaves three of the other text.
  EXPECT_EQ(encode_pair(kBert, "a", "b b b b b", 7).ids, (Ids{4, 0, 5, 1, 1, 1, 5}));
  EXPECT_EQ(encode_pair(kBert, "b b b b b", "a", 7).ids, (Ids{4, 1, 1, 1, 5, 0, 5}));
  // Room for 5 and both longer: the longer one keeps the odd token, of equal ones the second.
  EXPECT_EQ(encode_pair(kBert, "a a a a a a", "b b b b b b b", 8).ids,
            (Ids{4, 0, 0, 5, 1, 1, 1, 5}));
  EXPECT_EQ(encode_pair(kBert, "a a a a a a a", "b b b b b b", 8).ids,
            (Ids{4, 0, 0, 0, 5, 1, 1, 5}));
  EXPECT_EQ(encode_pair(kBert, "a a a a a a", "b b b b b b", 8).ids, (Ids{4, 0, 0, 5, 1, 1, 1, 5}));
  const auto nothing = encode_pair(kBert, "a a", "b", 3);
  EXPECT_EQ(nothing.ids, (Ids{4, 5, 5}));
  EXPECT_TRUE(nothing.encoded.is_truncated);
}

TEST(TokenizerPair, WhichOfTwoLongTextsIsLongerIsFoundOut) {
  std::string first;
  std::string second;
  for (int i = 0; i < 5'000; ++i) first += "a ";
  for (int i = 0; i < 5'001; ++i) second += "b ";
  EXPECT_EQ(encode_pair(kBert, first, second, 6).ids, (Ids{4, 0, 5, 1, 1, 5}));
  EXPECT_EQ(encode_pair(kBert, second, first, 6).ids, (Ids{4, 1, 1, 5, 0, 5}));
}

// Of a text of combining marks each is read, however few tokens stay. In CPU time, which a busy
// machine does not lengthen.
TEST(TokenizerPair, AFirstTextIsReadOnceForAllItsPairs) {
  const auto tokenizer = Tokenizer::load(std::string(kFolder) + "bert_uncased/tokenizer.json");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto scratch = (*tokenizer)->make_scratch();
  std::string marks = "long ";
  for (int i = 0; i < 300'000; ++i) marks += "\xCC\x81";  // a combining accent, which is stripped
  marks += "end";
  const auto seconds_of = [&](int pair_count) {
    Tokenizer::FirstOfPairs first(marks);
    Ids ids;
    const auto begin = process_cpu_seconds();
    for (int i = 0; i < pair_count; ++i) {
      (*tokenizer)->encode_pair(first, "short", 32, *scratch, ids);
    }
    return process_cpu_seconds() - begin;
  };
  seconds_of(1);
  const auto of_one = seconds_of(1);
  EXPECT_LT(seconds_of(200), 20 * of_one);
}

TEST(TokenizerPair, ATemplateInAnotherOrderEncodesNoPairs) {
  const auto with_pair = [](const std::string& pair) {
    const auto tokenizer = Tokenizer::parse(letters(
        R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"[SEP]": {"id": "[SEP]", "ids": [5], "tokens": ["[SEP]"]}},
            "pair": )" +
        pair + "}"));
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    return (*tokenizer)->encodes_pairs();
  };
  const std::string a = R"({"Sequence": {"id": "A", "type_id": 0}})";
  const std::string b = R"({"Sequence": {"id": "B", "type_id": 1}})";
  const std::string b_of_0 = R"({"Sequence": {"id": "B", "type_id": 0}})";
  const std::string sep_of_1 = R"({"SpecialToken": {"id": "[SEP]", "type_id": 1}})";
  EXPECT_TRUE(with_pair("[" + a + "," + b + "]"));
  EXPECT_TRUE(with_pair("[" + a + "," + sep_of_1 + "," + b + "]"));
  EXPECT_FALSE(with_pair("[" + b_of_0 + "," + a + "]"));
  EXPECT_FALSE(with_pair("[" + a + "]"));
  EXPECT_FALSE(with_pair("[" + a + "," + sep_of_1 + "," + b_of_0 + "]"));
  EXPECT_FALSE(with_pair("[" + a + "," + b_of_0 + "," + sep_of_1 + "]"));
}

TEST(TokenizerPair, KnowsItsSpecialTokens) {
  EXPECT_EQ((*Tokenizer::parse(letters(kBert)))->pair_special_token_count(), 3U);
  EXPECT_EQ((*Tokenizer::parse(letters("null")))->pair_special_token_count(), 0U);
}

}  // namespace
}  // namespace muster
