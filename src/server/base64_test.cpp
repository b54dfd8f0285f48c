#include "server/base64.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "server/vector_registers_fixture.h"

namespace muster {
namespace {

std::string put(PutBase64 way, std::span<const std::byte> bytes) {
  std::string text(base64_size(bytes.size()) + 1, '#');
  const char* end = way(bytes, text.data());
  EXPECT_EQ(end, text.data() + text.size() - 1);
  EXPECT_EQ(text.back(), '#');  // nothing is written behind it
  text.pop_back();
  return text;
}

std::string put(PutBase64 way, std::string_view bytes) {
  return put(way, std::as_bytes(std::span(bytes)));
}

// Six bits at a time, as RFC 4648 section 4 describes it.
std::string by_definition(std::span<const std::byte> bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 6) {
    std::size_t number = 0;
    for (std::size_t at = bit; at < bit + 6; ++at) {
      const bool is_set = at < 8 * bytes.size() &&
                          (std::to_integer<unsigned>(bytes[at / 8]) >> (7 - at % 8) & 1U) != 0;
      number = 2 * number + (is_set ? 1 : 0);
    }
    text += kAlphabet[number];
  }
  while (text.size() % 4 != 0) text += '=';
  return text;
}

// Source: RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandardsExamples) {
  for (const auto way : put_base64_available()) {
    EXPECT_EQ(put(way, ""), "");
    EXPECT_EQ(put(way, "f"), "Zg==");
    EXPECT_EQ(put(way, "fo"), "Zm8=");
    EXPECT_EQ(put(way, "foo"), "Zm9v");
    EXPECT_EQ(put(way, "foob"), "Zm9vYg==");
    EXPECT_EQ(put(way, "fooba"), "Zm9vYmE=");
    EXPECT_EQ(put(way, "foobar"), "Zm9vYmFy");
  }
}

TEST(Base64, HasEachCharacterAtEachPlace) {
  // The numbers 0 to 63 in turn, six bits each, are the alphabet; from the second on, it shifted.
  std::vector<std::byte> bytes;
  for (unsigned round = 0; round < 4; ++round) {
    for (unsigned number = round; number < 64 + round; number += 4) {
      const auto at = [&](unsigned more) { return (number + more) % 64; };
      bytes.push_back(static_cast<std::byte>(at(0) << 2 | at(1) >> 4));
      bytes.push_back(static_cast<std::byte>((at(1) << 4 | at(2) >> 2) & 0xFF));
      bytes.push_back(static_cast<std::byte>((at(2) << 6 | at(3)) & 0xFF));
    }
  }
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string expected;
  for (unsigned round = 0; round < 4; ++round) {
    expected += alphabet.substr(round) + alphabet.substr(0, round);
  }
  for (const auto way : put_base64_available()) EXPECT_EQ(put(way, bytes), expected);
}

TEST(Base64, OfAnyLength) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::byte> bytes;
  for (std::size_t length = 0; length <= 200; ++length) {
    for (const auto way : put_base64_available()) {
      ASSERT_EQ(put(way, bytes), by_definition(bytes)) << length;
    }
    bytes.push_back(static_cast<std::byte>(random() & 0xFF));
  }
}

TEST(Base64, LeavesNothingInTheUpperHalvesOfVectorRegisters) {
  const std::vector<std::byte> bytes(96, std::byte{1});
  std::string text(base64_size(bytes.size()), ' ');
  const auto before = are_upper_halves_used();
  if (before.value_or(true)) GTEST_SKIP() << "the CPU does not say so, or they are in use already";
  for (const auto way : put_base64_available()) {
    way(bytes, text.data());
    EXPECT_EQ(are_upper_halves_used(), false);
  }
}

}  // namespace
}  // namespace muster
