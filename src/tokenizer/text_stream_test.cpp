#include "tokenizer/text_stream.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/decoder.h"

namespace muster {
namespace {

using Ids = std::vector<TokenId>;

// Ids: 0 <unk>, 1 <s>, 2 ▁a, 3 b, 4 ▁, 5 to 7 the bytes of 中, 8 the first byte of é, 9 its second.
constexpr std::string_view kSentencepiece = R"({"model":{"type":"BPE","byte_fallback":true,
  "vocab":{"<unk>":0,"<s>":1,"▁a":2,"b":3,"▁":4,"<0xE4>":5,"<0xB8>":6,"<0xAD>":7,"<0xC3>":8,
  "<0xA9>":9,"a":10},"merges":[]},"added_tokens":[{"id":1,"content":"<s>","single_word":false,
  "lstrip":false,"rstrip":false,"normalized":false,"special":true}],"decoder":{"type":"Sequence",
  "decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
  {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}})";

// The byte alphabet of é is Ã and ©, that of a space is Ġ.
constexpr std::string_view kByteLevel = R"({"model":{"type":"BPE","vocab":{"Ġa":0,"Ã":1,"©":2,
  "b":3,"<|end|>":4},"merges":[]},"added_tokens":[{"id":4,"content":"<|end|>","single_word":false,
  "lstrip":false,"rstrip":false,"normalized":false,"special":true}],
  "decoder":{"type":"ByteLevel"}})";

std::unique_ptr<const Tokenizer> parse(std::string_view json) {
  auto made = Tokenizer::parse(json);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

/// What each push gives, and what the end gives.
std::vector<std::string> parts_of(const Tokenizer& tokenizer, const Ids& ids,
                                  TextStreamOptions options = {}) {
  TextStream stream(tokenizer, options);
  std::vector<std::string> parts;
  for (const auto id : ids) parts.push_back(stream.push(id));
  parts.push_back(stream.finish());
  return parts;
}

using Parts = std::vector<std::string>;

TEST(TextStream, ACharacterComesWhenItsLastByteIsHere) {
  const auto tokenizer = parse(kByteLevel);
  EXPECT_EQ(parts_of(*tokenizer, {0, 1, 2, 3}), (Parts{" a", "", "é", "b", ""}));
  // A beginning that nothing completes is one replacement character, at once or at the end.
  EXPECT_EQ(parts_of(*tokenizer, {1, 3}), (Parts{"", "\uFFFDb", ""}));
  EXPECT_EQ(parts_of(*tokenizer, {3, 1}), (Parts{"b", "", "\uFFFD"}));
}

TEST(TextStream, SpecialTokensAreLeftOutOrShown) {
  const auto tokenizer = parse(kByteLevel);
  EXPECT_EQ(parts_of(*tokenizer, {3, 4, 99, 3}), (Parts{"b", "", "", "b", ""}));
  EXPECT_EQ(parts_of(*tokenizer, {3, 4}, {.skips_special_tokens = false, .continues_text = false}),
            (Parts{"b", "<|end|>", ""}));
}

TEST(TextStream, ARunOfBytesWaitsForItsEnd) {
  const auto tokenizer = parse(kSentencepiece);
  EXPECT_EQ(parts_of(*tokenizer, {3, 5, 6, 7, 3}), (Parts{"b", "", "", "", "中b", ""}));
  // As a whole the run is no UTF-8: one replacement character a byte, as the library does.
  EXPECT_EQ(parts_of(*tokenizer, {8, 9, 5}), (Parts{"", "", "", "\uFFFD\uFFFD\uFFFD"}));
}

TEST(TextStream, TheFirstSpaceGoesUnlessAPromptStandsBefore) {
  const auto tokenizer = parse(kSentencepiece);
  EXPECT_EQ(parts_of(*tokenizer, {2, 2}), (Parts{"a", " a", ""}));
  EXPECT_EQ(parts_of(*tokenizer, {4, 4, 3}), (Parts{"", " ", "b", ""}));
  EXPECT_EQ(parts_of(*tokenizer, {2, 2}, {.skips_special_tokens = true, .continues_text = true}),
            (Parts{" a", " a", ""}));
}

TEST(TokenBytes, APartOfACharacterHasBytesThatNoTextCanShow) {
  const auto bytes = parse(kByteLevel);
  EXPECT_EQ(bytes->token_bytes(0, true), " a");
  EXPECT_EQ(bytes->token_bytes(1, true), "\xC3");
  EXPECT_EQ(bytes->token_bytes(2, true), "\xA9");
  EXPECT_EQ(bytes->token_bytes(4, true), std::nullopt) << "a special token is no text";
  EXPECT_EQ(bytes->token_bytes(99, true), std::nullopt) << "an id without a token";
  const auto pieces = parse(kSentencepiece);
  EXPECT_EQ(pieces->token_bytes(5, true), "\xE4");
  EXPECT_EQ(pieces->token_bytes(1, true), std::nullopt);
}

TEST(TokenBytes, TheFirstSpaceGoesUnlessAPromptStandsBefore) {
  const auto tokenizer = parse(kSentencepiece);
  EXPECT_EQ(tokenizer->token_bytes(2, true), " a");
  EXPECT_EQ(tokenizer->token_bytes(2, false), "a");
}

TEST(TokenBytes, JoinedTheyAreTheText) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  // Ids of which each text is made: those of a character only one behind the other.
  const auto check = [&](const Tokenizer& tokenizer, const std::vector<Ids>& runs) {
    for (int round = 0; round < 200; ++round) {
      Ids ids;
      for (std::size_t i = random() % 8; i > 0; --i) {
        const auto& run = runs[random() % runs.size()];
        ids.insert(ids.end(), run.begin(), run.end());
      }
      std::string joined;
      bool is_first = true;
      for (const auto id : ids) {
        const auto bytes = tokenizer.token_bytes(id, !is_first);
        joined += bytes.value_or("");
        is_first = is_first && !bytes;
      }
      ASSERT_EQ(joined, tokenizer.decode(ids, true));
    }
  };
  check(*parse(kByteLevel), {{0}, {1, 2}, {3}, {4}});
  check(*parse(kSentencepiece), {{1}, {2}, {3}, {5, 6, 7}, {8, 9}, {10}});
}

TEST(TextStream, RandomIdsGiveWhatDecodingThemAtOnceGives) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const Parts decoders{R"({"type":"ByteLevel"})",
                       R"({"type":"WordPiece","prefix":"b","cleanup":true})",
                       R"({"type":"BPEDecoder","suffix":"b"})",
                       R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})",
                       R"({"type":"Sequence","decoders":[{"type":"Fuse"},
                           {"type":"Strip","content":"b","start":2,"stop":2}]})",
                       R"({"type":"Sequence","decoders":[{"type":"ByteLevel"},
                           {"type":"Replace","pattern":{"String":"ab"},"content":"-"}]})"};
  std::vector<std::unique_ptr<const Tokenizer>> tokenizers;
  tokenizers.push_back(parse(kSentencepiece));
  const std::string whole(kSentencepiece);
  const auto start = whole.substr(0, whole.find(R"("decoder")"));
  for (const auto& decoder : decoders) {
    tokenizers.push_back(parse(start + R"("decoder":)" + decoder + "}"));
  }
  tokenizers.push_back(parse(start.substr(0, start.rfind(',')) + "}"));  // no decoder
  for (int round = 0; round < 500; ++round) {
    Ids ids(random() % 12);
    for (auto& id : ids) id = static_cast<std::uint32_t>(random() % 12);  // 11 has no token
    for (const auto& tokenizer : tokenizers) {
      for (const bool skips : {false, true}) {
        std::string joined;
        for (const auto& part :
             parts_of(*tokenizer, ids, {.skips_special_tokens = skips, .continues_text = false})) {
          ASSERT_EQ(unfinished_utf8_size(part), 0U);
          joined += part;
        }
        ASSERT_EQ(joined, tokenizer->decode(ids, skips));
      }
    }
  }
}

}  // namespace
}  // namespace muster
