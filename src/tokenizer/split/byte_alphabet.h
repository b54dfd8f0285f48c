#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The character that stands for a byte in byte-level vocabularies: itself where it is printable
/// Latin-1, else one from U+0100 on. Source: Radford et al. 2019, bytes_to_unicode of GPT-2.
constexpr std::array<char32_t, 256> make_byte_characters() {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    characters[byte] = is_printable ? byte : next++;
  }
  return characters;
}
inline constexpr std::array<char32_t, 256> kByteCharacters = make_byte_characters();

/// The byte that the character stands for; nullopt for any other character.
std::optional<std::uint8_t> byte_of_character(char32_t character);

/// Appends the characters that stand for the bytes of `text`.
void append_byte_characters(std::string_view text, std::string& out);

/// The bytes that the characters of `token` stand for; nullopt if one stands for none.
std::optional<std::string> bytes_of_token(std::string_view token);

}  // namespace muster
