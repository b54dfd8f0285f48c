#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/normalize/normalizer.h"

namespace muster {
namespace {

using Rules = std::map<std::string, std::string>;

constexpr std::uint32_t kLeaf = 1U << 31;
constexpr std::uint32_t kHasLeaf = 1U << 8;

std::string bytes_of(const std::vector<std::uint32_t>& units) {
  std::string bytes;
  for (const std::uint32_t unit : units) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>((unit >> shift) & 0xFF));
    }
  }
  return bytes;
}

/// A charsmap in which each node has a block of 256 units for its children.
std::string charsmap_of(const Rules& rules) {
  std::vector<std::uint32_t> units(256);
  std::map<std::string, std::uint32_t> nodes = {{"", 0}};
  const auto child_block = [&](const std::string& prefix) {
    std::uint32_t& unit = units[nodes[prefix]];
    if (unit >> 10 == 0) {
      unit |= (nodes[prefix] ^ static_cast<std::uint32_t>(units.size())) << 10;
      units.resize(units.size() + 256);
    }
    return (units[nodes[prefix]] >> 10) ^ nodes[prefix];
  };
  std::string contents;
  for (const auto& [key, content] : rules) {
    for (std::size_t size = 1; size <= key.size(); ++size) {
      const auto byte = static_cast<unsigned char>(key[size - 1]);
      const std::uint32_t child = child_block(key.substr(0, size - 1)) ^ byte;
      nodes[key.substr(0, size)] = child;
      units[child] |= byte;
    }
    units[child_block(key)] = kLeaf | static_cast<std::uint32_t>(contents.size());
    units[nodes[key]] |= kHasLeaf;
    contents.append(content).push_back('\0');
  }
  return bytes_of({static_cast<std::uint32_t>(units.size() * 4)}) + bytes_of(units) + contents;
}

std::unique_ptr<const Normalizer> precompiled(const Rules& rules) {
  auto map = Charsmap::parse(charsmap_of(rules));
  EXPECT_TRUE(map);
  return make_precompiled_normalizer(*std::move(map));
}

std::string apply(const Normalizer& normalizer, std::string text) {
  std::string spare;
  normalizer.normalize(text, spare, {});
  return text;
}

// The expected texts are what Precompiled of the library 0.23.3 makes with these rules.
TEST(PrecompiledNormalizer, ReplacesShortClustersByTheirFront) {
  const auto normalizer =
      precompiled({{"a", "xyz"}, {"\u0301", ""}, {"\u2122", "TM"}, {"ab", "never"}, {"\r", " "}});
  EXPECT_EQ(apply(*normalizer, "abc"), "xyzbc");                // the shortest key counts
  EXPECT_EQ(apply(*normalizer, "a\u0301b"), "xyzb");            // the mark goes with its base
  EXPECT_EQ(apply(*normalizer, "a\u20DD\u0301"), "xyz\u20DD");  // six bytes: one by one
  EXPECT_EQ(apply(*normalizer, "b\u0301"), "b");                // no key in front: one by one
  EXPECT_EQ(apply(*normalizer, "\r\n-\r-\n"), " - -\n");        // CR LF is one cluster
  EXPECT_EQ(apply(*normalizer, "\u2122\u0301"), "TM");
  EXPECT_EQ(apply(*normalizer, std::string("a\0", 2)), std::string("xyz\0", 4));
}

TEST(PrecompiledNormalizer, AllowsCutsOnlyIfWhiteSpaceStaysThat) {
  EXPECT_TRUE(precompiled({{"a", "b"}})->allows_cuts());
  EXPECT_TRUE(precompiled({{"\n", " "}})->allows_cuts());
  EXPECT_FALSE(precompiled({{"\n", ""}})->allows_cuts());
  EXPECT_FALSE(precompiled({{" ", ""}})->allows_cuts());
  EXPECT_FALSE(precompiled({{" a", "a"}})->allows_cuts());
}

TEST(PrecompiledNormalizer, SaysHowMuchATextCanGrow) {
  EXPECT_EQ(precompiled({{"a", ""}})->growth_max(), 1);
  EXPECT_EQ(precompiled({{"a", "xyz"}})->growth_max(), 3);
  EXPECT_EQ(precompiled({{"\u00E9", "123456"}})->growth_max(), 3);  // two bytes
  EXPECT_EQ(precompiled({{"\u2122", "123456"}})->growth_max(), 2);  // three
}

TEST(Charsmap, RefusesWhatIsBroken) {
  EXPECT_FALSE(Charsmap::parse(""));
  EXPECT_FALSE(Charsmap::parse(std::string(4, '\0')));       // no trie
  EXPECT_FALSE(Charsmap::parse(bytes_of({8, 0})));           // cut off
  EXPECT_FALSE(Charsmap::parse(bytes_of({4, 0}) + "\xFF"));  // contents that are not UTF-8
  EXPECT_TRUE(Charsmap::parse(bytes_of({4, 0}) + "\u00E9"));
}

TEST(Charsmap, FindsNothingOutsideOfItself) {
  // The root's children lie at 0x3FFFFF, far behind the end.
  const auto far = Charsmap::parse(bytes_of({4, 0xFFFFFC00}) + "a");
  ASSERT_TRUE(far);
  EXPECT_EQ(far->find("a"), std::nullopt);
  // A rule for 'a' whose content begins inside of a character, then one far behind all contents.
  for (const std::uint32_t place : {1U, 1000U}) {
    std::vector<std::uint32_t> units(512);
    units[0] = 256U << 10;
    units[256 ^ 'a'] = 'a' | kHasLeaf | (std::uint32_t{'a'} << 10);  // its value is unit 256
    units[256] = kLeaf | place;
    std::vector<std::uint32_t> all = {2048};
    all.insert(all.end(), units.begin(), units.end());
    const auto map = Charsmap::parse(bytes_of(all) + "\u00E9");
    ASSERT_TRUE(map);
    EXPECT_EQ(map->find("a"), std::nullopt) << place;
  }
}

TEST(Base64, ReadsTheExamplesOfTheStandard) {
  EXPECT_EQ(*decode_base64(""), "");
  EXPECT_EQ(*decode_base64("Zg=="), "f");  // RFC 4648, section 10
  EXPECT_EQ(*decode_base64("Zm8="), "fo");
  EXPECT_EQ(*decode_base64("Zm9vYmFy"), "foobar");
  for (const auto* text : {"Zg", "Zh==", "Z===", "====", "Zg=a", "Zm9*"}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

}  // namespace
}  // namespace muster
