#include "serving/shown_tokens.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace muster {
namespace {

// Ids: 0 <unk>, 1 <s>, 2 ▁a, 3 b, 4 and 5 the bytes of é.
constexpr std::string_view kPieces = R"({"model":{"type":"BPE","byte_fallback":true,
  "vocab":{"<unk>":0,"<s>":1,"▁a":2,"b":3,"<0xC3>":4,"<0xA9>":5},"merges":[]},
  "added_tokens":[{"id":1,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,
  "normalized":false,"special":true}],"decoder":{"type":"Sequence",
  "decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
  {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}})";

std::unique_ptr<const Tokenizer> tokenizer() {
  auto made = Tokenizer::parse(kPieces);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

TEST(ShownTokens, EachHasItsBytesAndItsLogarithm) {
  const auto pieces = tokenizer();
  ShownTokens tokens(*pieces, true);
  const auto first = tokens.next(2, {.chosen = -0.5F, .top = {{3, -0.25F}, {4, -2.0F}}});
  EXPECT_EQ(first.chosen.bytes, " a");
  EXPECT_EQ(first.chosen.logprob, -0.5F);
  ASSERT_EQ(first.top.size(), 2U);
  EXPECT_EQ(first.top[0].bytes, "b");
  EXPECT_EQ(first.top[0].logprob, -0.25F);
  EXPECT_EQ(first.top[1].bytes, "\xC3");
  EXPECT_TRUE(first.chosen.is_text && first.top[0].is_text && first.top[1].is_text);
}

// As the text of the reply does; a special token before it is no text.
TEST(ShownTokens, TheFirstOfAConversationsReplyLosesItsSpaceAndSoDoItsRivals) {
  const auto pieces = tokenizer();
  ShownTokens tokens(*pieces, false);
  EXPECT_EQ(tokens.next(1, {}).chosen.bytes, "<s>");
  const auto first = tokens.next(3, {.top = {{2, -1.0F}}});
  EXPECT_EQ(first.chosen.bytes, "b");
  EXPECT_EQ(first.top[0].bytes, "a");
  EXPECT_EQ(tokens.next(2, {}).chosen.bytes, " a");
}

TEST(ShownTokens, WhatIsNoTextIsShownByItsName) {
  const auto pieces = tokenizer();
  ShownTokens tokens(*pieces, true);
  const auto special = tokens.next(1, {.top = {{999, -1.0F}}});
  EXPECT_EQ(special.chosen.bytes, "<s>");
  EXPECT_FALSE(special.chosen.is_text);
  EXPECT_EQ(special.top[0].bytes, "token_id:999");
  EXPECT_FALSE(special.top[0].is_text);
}

}  // namespace
}  // namespace muster
