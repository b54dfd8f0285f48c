#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "modelfile/gguf_file.h"
#include "modelfile/gguf_writer.h"

namespace muster {
namespace {

using Ids = std::vector<std::uint32_t>;

/// The tokens of a header with these bytes; the bytes stay in `file`.
class GgufTokensTest : public testing::Test {
 protected:
  Result<GgufTokens> read(const GgufWriter& writer) {
    file_ = writer.bytes();
    const auto bytes = std::as_bytes(std::span(file_));
    auto header = parse_gguf_header(bytes, bytes.size());
    EXPECT_TRUE(header) << (header ? "" : header.error().message);
    if (!header) return header.error();
    header_ = *std::move(header);
    return read_gguf_tokens(header_, bytes);
  }

  /// A file with `more` keys behind these three.
  static GgufWriter start(std::uint64_t more, const std::vector<std::string>& tokens) {
    GgufWriter writer;
    writer.header(0, 2 + more)
        .key("tokenizer.ggml.model", "gpt2")
        .key("tokenizer.ggml.tokens", tokens);
    return writer;
  }

  std::string error_of(const GgufWriter& writer) {
    const auto tokens = read(writer);
    EXPECT_FALSE(tokens);
    return tokens ? std::string() : tokens.error().message;
  }

  GgufHeader header_;

 private:
  std::string file_;
};

TEST_F(GgufTokensTest, EveryKeyOfTheTokenizerIsRead) {
  auto writer = start(9, {"a", "b", "<x>", "ab"});
  writer.key("tokenizer.ggml.pre", "smollm")
      .key("tokenizer.ggml.scores", std::vector<float>{0, -1, -2, -3.5F})
      .key("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 3, 4})
      .key("tokenizer.ggml.merges", std::vector<std::string>{"a b"})
      .key("tokenizer.ggml.bos_token_id", 1U)
      .key("tokenizer.ggml.eos_token_id", 2U)
      .key("tokenizer.ggml.add_bos_token", false)
      .key("tokenizer.ggml.add_space_prefix", true)
      .key("tokenizer.chat_template", std::string(5000, 'x'));
  const auto tokens = read(writer);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->model, "gpt2");
  EXPECT_EQ(tokens->pre, "smollm");
  EXPECT_EQ(tokens->tokens, (std::vector<std::string_view>{"a", "b", "<x>", "ab"}));
  EXPECT_EQ(tokens->scores, (std::vector<float>{0, -1, -2, -3.5F}));
  EXPECT_EQ(tokens->types[2], GgufTokenType::Control);
  EXPECT_EQ(tokens->types[3], GgufTokenType::UserDefined);
  EXPECT_EQ(tokens->merges, (std::vector<std::string_view>{"a b"}));
  EXPECT_EQ(tokens->bos_id, 1U);
  EXPECT_EQ(tokens->eos_id, 2U);
  EXPECT_EQ(tokens->adds_bos, false);
  EXPECT_EQ(tokens->adds_eos, std::nullopt);
  EXPECT_EQ(tokens->adds_space_prefix, true);
  EXPECT_EQ(tokens->stop_ids, Ids{2});
  EXPECT_EQ(tokens->chat_template.size(), 5000U);
}

TEST_F(GgufTokensTest, EndsOfAReplyAreTheStatedIdsAndThoseKnownByTheirText) {
  auto writer = start(3, {"<|endoftext|>", "a", "<|im_end|>", "</stop>", "<|eom_id|>"});
  writer.key("tokenizer.ggml.eos_token_id", 2U)
      .key("tokenizer.ggml.eot_token_id", 3U)
      .key("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 3, 3, 1});
  const auto tokens = read(writer);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->stop_ids, (Ids{0, 2, 3, 4}));
  // By its text it is an end, so it is a control token whatever its type says.
  EXPECT_EQ(tokens->types[0], GgufTokenType::Control);
}

TEST_F(GgufTokensTest, AMarkWithinAReplyIsNoEndBesideThoseOfItsModel) {
  const auto ends = [&](const std::vector<std::string>& texts) {
    const auto tokens = read(start(0, texts));
    return tokens ? tokens->stop_ids : Ids{99};
  };
  EXPECT_EQ(ends({"<|end|>", "</s>"}), (Ids{0, 1}));
  EXPECT_EQ(ends({"<|end|>", "<|return|>", "<|call|>"}), (Ids{1, 2}));
  EXPECT_EQ(ends({"</s>", "<|tool_response>"}), Ids{1});
}

TEST_F(GgufTokensTest, ModelLlamaHasSentencepiecesIdsUnlessTheFileStatesOthers) {
  GgufWriter writer;
  writer.header(0, 3)
      .key("tokenizer.ggml.model", "llama")
      .key("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>", "x"})
      .key("tokenizer.ggml.eos_token_id", 3U);
  const auto tokens = read(writer);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->unknown_id, 0U);
  EXPECT_EQ(tokens->bos_id, 1U);
  EXPECT_EQ(tokens->eos_id, 3U);
  EXPECT_EQ(tokens->stop_ids, (Ids{2, 3}));
}

TEST_F(GgufTokensTest, OnlyThePhi3NameStripsBehindSpecialTokens) {
  for (const auto& [name, strips] : {std::pair("Phi 3 Mini", false), std::pair("My Phi-3", true)}) {
    auto writer = start(1, {"a"});
    const auto tokens = read(writer.key("general.name", name));
    ASSERT_TRUE(tokens);
    EXPECT_EQ(tokens->strips_behind_special, strips) << name;
  }
}

TEST_F(GgufTokensTest, WhatDoesNotFitIsRefusedAndNamed) {
  EXPECT_EQ(error_of(GgufWriter().header(0, 0)),
            "the file has no tokenizer: tokenizer.ggml.model or tokenizer.ggml.tokens is missing");
  EXPECT_EQ(error_of(start(1, {"a"}).key("tokenizer.ggml.eos_token_id", 1U)),
            "tokenizer.ggml.eos_token_id is not an id below 1");
  EXPECT_EQ(error_of(start(1, {"a"}).key("tokenizer.ggml.add_bos_token", 1U)),
            "tokenizer.ggml.add_bos_token is not true or false");
  EXPECT_EQ(error_of(start(1, {"a"}).key("tokenizer.ggml.scores", std::vector<float>{1, 2})),
            "tokenizer.ggml.scores is not a list of 1 numbers");
  EXPECT_EQ(error_of(start(1, {"a"}).key("tokenizer.ggml.merges", std::vector<float>{1})),
            "tokenizer.ggml.merges is not a list of texts");
  EXPECT_EQ(error_of(start(1, {"a"}).key("tokenizer.chat_template", 1U)),
            "tokenizer.chat_template is not a text");
}

}  // namespace
}  // namespace muster
