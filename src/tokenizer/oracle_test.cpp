// The fixtures are made by tools/fixtures/tokenizer_oracle.py with Hugging Face tokenizers 0.23.3.

#include <gtest/gtest.h>
#include <simdjson.h>

#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tokenizer/decoder.h"
#include "tokenizer/text_pass.h"
#include "tokenizer/text_stream.h"
#include "tokenizer/tokenizer.h"

namespace muster {
namespace {

using Ids = std::vector<TokenId>;

constexpr std::string_view kFolder = MUSTER_SOURCE_DIR "/src/tokenizer/testdata/";

struct Expected {
  Ids ids;
  std::string decoded;
  std::string without_special;
  bool has_decoded = false;
};

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> read_texts() {
  simdjson::dom::parser parser;
  std::vector<std::string> texts;
  for (const std::string& line : lines_of(std::string(kFolder) + "texts.jsonl")) {
    texts.emplace_back(parser.parse(line).at_key("text").get_string().value());
  }
  return texts;
}

std::vector<Expected> read_expected(const std::string& name) {
  simdjson::dom::parser parser;
  std::vector<Expected> rows;
  for (const std::string& line : lines_of(std::string(kFolder) + name + "/expected.jsonl")) {
    const simdjson::dom::element row = parser.parse(line);
    Expected expected;
    for (const std::uint64_t id : row["ids"].get_array()) {
      expected.ids.push_back(static_cast<TokenId>(id));
    }
    std::string_view decoded;
    if (row["decoded"].get(decoded) == simdjson::SUCCESS) {
      expected.has_decoded = true;
      expected.decoded = decoded;
      expected.without_special = row["without_special"].get_string().value();
    }
    rows.push_back(std::move(expected));
  }
  return rows;
}

class Oracle : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    texts_ = read_texts();
    expected_ = read_expected(GetParam());
    ASSERT_EQ(texts_.size(), expected_.size());
    ASSERT_GT(texts_.size(), 300U);
  }

  std::string path() const { return std::string(kFolder) + GetParam() + "/tokenizer.json"; }

  std::vector<std::string> texts_;
  std::vector<Expected> expected_;
};

TEST_P(Oracle, GivesTheSameIds) {
  const auto tokenizer = Tokenizer::load(path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto scratch = (*tokenizer)->make_scratch();
  for (const bool is_warm : {false, true}) {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      SCOPED_TRACE(texts_[i]);
      Ids ids;
      (*tokenizer)->encode(texts_[i], std::numeric_limits<std::uint32_t>::max(), *scratch, ids);
      ASSERT_EQ(ids, expected_[i].ids) << (is_warm ? "warm" : "cold");
    }
  }
}

TEST_P(Oracle, GivesTheSameTextBack) {
  const auto tokenizer = Tokenizer::load(path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  for (const Expected& row : expected_) {
    if (row.has_decoded) {
      ASSERT_EQ((*tokenizer)->decode(row.ids, false), row.decoded);
      ASSERT_EQ((*tokenizer)->decode(row.ids, true), row.without_special);
    }
  }
}

TEST_P(Oracle, AStreamGivesTheSameTextInWholeCharacters) {
  const auto tokenizer = Tokenizer::load(path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  for (const Expected& row : expected_) {
    if (!row.has_decoded) continue;
    for (const bool skips : {false, true}) {
      TextStream stream(**tokenizer, {.skips_special_tokens = skips, .continues_text = false});
      std::string text;
      for (const TokenId id : row.ids) {
        const auto part = stream.push(id);
        ASSERT_EQ(unfinished_utf8_size(part), 0U) << part;
        text += part;
      }
      text += stream.finish();
      ASSERT_EQ(text, skips ? row.without_special : row.decoded);
    }
  }
}

TEST_P(Oracle, LimitsOnlyCutTheEnd) {
  const auto tokenizer = Tokenizer::load(path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto scratch = (*tokenizer)->make_scratch();
  const std::uint32_t special = (*tokenizer)->special_token_count();
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    SCOPED_TRACE(texts_[i]);
    const Ids& whole = expected_[i].ids;
    const std::uint32_t length_max = special + static_cast<std::uint32_t>(i % 9);
    Ids ids;
    const auto encoded = (*tokenizer)->encode(texts_[i], length_max, *scratch, ids);
    ASSERT_EQ(encoded.is_truncated, whole.size() > length_max);
    ASSERT_EQ(ids.size(), std::min<std::size_t>(whole.size(), length_max));
  }
}

TEST_P(Oracle, AllIdsComeOrNoneWhereTheyAreTooMany) {
  const auto tokenizer = Tokenizer::load(path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto scratch = (*tokenizer)->make_scratch();
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    SCOPED_TRACE(texts_[i]);
    const Ids& whole = expected_[i].ids;
    const auto count = static_cast<std::uint32_t>(whole.size());
    ASSERT_EQ((*tokenizer)->encode_whole(texts_[i], count, true, *scratch), whole);
    if (count == (*tokenizer)->special_token_count()) continue;
    ASSERT_FALSE((*tokenizer)->encode_whole(texts_[i], count - 1, true, *scratch));
  }
}

TEST_P(Oracle, PartsGiveWhatTheWholeGives) {
  const auto json = read_file(path());
  ASSERT_TRUE(json);
  const auto parts = read_tokenizer_json(*json);
  ASSERT_TRUE(parts) << parts.error().message;
  Tokenizer::Scratch scratch;
  // Each text, and all of them in one with words between, where most cuts are.
  std::vector<std::string> texts = texts_;
  std::string all;
  for (const std::string& text : texts_) {
    all += text + " some words between\nand lines";
  }
  texts.push_back(all);
  for (const std::string& text : texts) {
    Ids whole;
    TextPass(*parts, scratch, whole, text.size() * 4).encode(text, text.size() + 1);
    for (const std::size_t part_size : {1U, 7U, 64U}) {
      SCOPED_TRACE(text);
      Ids ids;
      TextPass(*parts, scratch, ids, text.size() * 4).encode(text, part_size);
      ASSERT_EQ(ids, whole) << part_size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Oracle,
                         testing::Values("bert_uncased", "bert_cased", "mpnet", "roberta", "gpt2",
                                         "llama3", "qwen2", "gpt4o", "llama2", "gemma", "clip",
                                         "added_tokens", "xlm_roberta", "t5", "albert",
                                         "unigram_bytes"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace muster
