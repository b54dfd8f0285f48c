#include "dataset/encoding_look.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

using std::string_literals::operator""s;

TEST(EncodingLook, KnowsUtf16ByItsNulBytes) {
  EXPECT_EQ(look_for_wide_encoding("h\0i\0\r\0\n\0"s), "UTF-16LE");
  EXPECT_EQ(look_for_wide_encoding("\0h\0i\0\r\0\n"s), "UTF-16BE");
  EXPECT_EQ(look_for_wide_encoding("a\0\n\0b"s), "UTF-16LE") << "cut within a character";
  // One of four characters is a Cyrillic one, whose bytes are 0x31 and 0x04.
  EXPECT_EQ(look_for_wide_encoding("a\0b\0\x31\x04z\0"s), "UTF-16LE");
}

TEST(EncodingLook, KnowsByteOrderMarks) {
  EXPECT_EQ(look_for_wide_encoding("\xff\xfe\x31\x04"s), "UTF-16LE");
  EXPECT_EQ(look_for_wide_encoding("\xfe\xff\x04\x31"s), "UTF-16BE");
  EXPECT_EQ(look_for_wide_encoding("\xff\xfe\0\0a\0\0\0"s), "UTF-32LE");
  EXPECT_EQ(look_for_wide_encoding("\0\0\xfe\xff\0\0\0a"s), "UTF-32BE");
}

TEST(EncodingLook, LeavesUtf8Alone) {
  EXPECT_EQ(look_for_wide_encoding(""), std::nullopt);
  EXPECT_EQ(look_for_wide_encoding("a"), std::nullopt);
  EXPECT_EQ(look_for_wide_encoding("plain text\n"), std::nullopt);
  EXPECT_EQ(look_for_wide_encoding("\xef\xbb\xbfwith a mark\n"s), std::nullopt);
  EXPECT_EQ(look_for_wide_encoding("names\0between\0nul bytes\0"s), std::nullopt);
  EXPECT_EQ(look_for_wide_encoding("\0\0\0\0"s), std::nullopt);
}

}  // namespace
}  // namespace muster
