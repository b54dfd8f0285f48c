// The way back from characters to bytes is a table filled at compile time. All characters of the
// alphabet lie below U+0144, so it has 324 entries, and -1 stands for a character that is none
// of them.

#include "tokenizer/split/byte_alphabet.h"

#include "tokenizer/utf8.h"

namespace muster {
namespace {

constexpr char32_t kCharacterEnd = 0x144;  // 0x100 and the 68 bytes that are not printable

constexpr std::array<std::int16_t, kCharacterEnd> make_bytes() {
  std::array<std::int16_t, kCharacterEnd> bytes{};
  for (auto& byte : bytes) {
    byte = -1;
  }
  for (std::int16_t byte = 0; byte < 256; ++byte) {
    bytes[kByteCharacters[static_cast<std::size_t>(byte)]] = byte;
  }
  return bytes;
}
constexpr std::array<std::int16_t, kCharacterEnd> kBytes = make_bytes();

}  // namespace

std::optional<std::uint8_t> byte_of_character(char32_t character) {
  if (character >= kCharacterEnd || kBytes[character] < 0) {
    return std::nullopt;
  }
  return static_cast<std::uint8_t>(kBytes[character]);
}

void append_byte_characters(std::string_view text, std::string& out) {
  for (const char c : text) {
    append_utf8(kByteCharacters[static_cast<unsigned char>(c)], out);
  }
}

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (std::size_t at = 0; at < token.size();) {
    const Utf8Char next = utf8_char_at(token, at);
    const auto byte = byte_of_character(next.code_point);
    if (!byte) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(*byte));
    at += next.size;
  }
  return bytes;
}

}  // namespace muster
