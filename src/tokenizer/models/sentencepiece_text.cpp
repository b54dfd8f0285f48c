#include "tokenizer/models/sentencepiece_text.h"

namespace muster {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

std::optional<unsigned> digit_of(char c) {
  if (c >= 'a' && c <= 'f') c = static_cast<char>(c - 'a' + 'A');
  const auto at = kDigits.find(c);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(at);
}

}  // namespace

std::string byte_token(std::uint8_t byte) {
  return {'<', '0', 'x', kDigits[byte >> 4U], kDigits[byte & 0xFU], '>'};
}

std::optional<std::uint8_t> byte_of_byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  const auto high = token[3] == '+' ? std::optional(0U) : digit_of(token[3]);
  const auto low = digit_of(token[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<std::uint8_t>(*high << 4U | *low);
}

}  // namespace muster
