// The map comes from a model file and is not trusted: every index that it yields is checked
// before it is used, and contents are checked to be UTF-8 once, when the map is read. A look-up
// stops at the shortest key, not the longest, since that is what the library does. Units are
// decoded from little endian by hand, so the host's byte order does not matter.

#include "tokenizer/normalize/charsmap.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "tokenizer/reading/json_fields.h"

namespace muster {
namespace {

constexpr std::string_view kPart = "precompiled_charsmap";

// A unit of the trie: the byte that leads to it in the low eight bits, with the top bit set where
// it is no byte but a value.
constexpr std::uint32_t kLabelMask = 0x800000FF;
constexpr std::uint32_t kValueMask = 0x7FFFFFFF;

bool has_leaf(std::uint32_t unit) { return ((unit >> 8) & 1) == 1; }

std::size_t offset_of(std::uint32_t unit) {
  // Bit 9 says that the offset counts in blocks of 256.
  return std::size_t{unit >> 10} << ((unit & (1U << 9)) >> 6);
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i) {
    value = (value << 8) | static_cast<unsigned char>(bytes[at + i - 1]);
  }
  return value;
}

/// -1 for a character outside of the alphabet.
int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

Result<std::string> decode_base64(std::string_view text) {
  const Error broken = corrupt_json("broken base64", kPart);
  if (text.size() % 4 != 0) {
    return broken;
  }
  const std::size_t content_size = text.find_last_not_of('=') + 1;  // 0 if all is padding
  if (text.size() - content_size > 2) {
    return broken;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : text.substr(0, content_size)) {
    const int digit = base64_digit(c);
    if (digit < 0) {
      return broken;
    }
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    bit_count += 6;
    if (bit_count >= 8) {
      bit_count -= 8;
      bytes.push_back(static_cast<char>((bits >> bit_count) & 0xFF));
    }
  }
  const bool has_stray_bits = (bits & ((1U << bit_count) - 1)) != 0;
  if (has_stray_bits) {
    return broken;
  }
  return bytes;
}

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  constexpr std::size_t kUnitSize = 4;
  if (bytes.size() < kUnitSize) {
    return corrupt_json("cut off", kPart);
  }
  const std::size_t unit_count = little_endian(bytes, 0) / kUnitSize;
  if (unit_count == 0) {
    return corrupt_json("empty trie", kPart);
  }
  if (unit_count > (bytes.size() - kUnitSize) / kUnitSize) {
    return corrupt_json("cut off", kPart);
  }
  Charsmap map;
  map.units_.reserve(unit_count);
  for (std::size_t i = 1; i <= unit_count; ++i) {
    map.units_.push_back(little_endian(bytes, i * kUnitSize));
  }
  map.contents_ = bytes.substr((unit_count + 1) * kUnitSize);
  if (invalid_utf8_at(map.contents_)) {
    return corrupt_json("contents are not UTF-8", kPart);
  }
  for (std::size_t begin = 0; begin < map.contents_.size();) {
    const std::size_t end = std::min(map.contents_.find('\0', begin), map.contents_.size());
    map.content_size_max_ = std::max(map.content_size_max_, end - begin);
    begin = end + 1;
  }
  return map;
}

std::optional<std::size_t> Charsmap::child_of(std::size_t index, unsigned char byte) const {
  const std::size_t child = index ^ offset_of(units_[index]) ^ byte;
  const bool is_there = child < units_.size() && (units_[child] & kLabelMask) == byte;
  return is_there ? std::optional(child) : std::nullopt;
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  std::size_t index = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto child = byte == 0 ? std::nullopt : child_of(index, byte);
    if (!child) {
      return std::nullopt;
    }
    index = *child;
    if (has_leaf(units_[index])) {
      const std::size_t value = index ^ offset_of(units_[index]);
      return value < units_.size() ? content_at(units_[value] & kValueMask) : std::nullopt;
    }
  }
  return std::nullopt;
}

bool Charsmap::has_key_from(char byte) const {
  return child_of(0, static_cast<unsigned char>(byte)).has_value();
}

std::optional<std::string_view> Charsmap::content_at(std::size_t place) const {
  const std::string_view contents = contents_;
  const bool is_inside_character =
      place < contents.size() && (static_cast<unsigned char>(contents[place]) & 0xC0) == 0x80;
  if (place > contents.size() || is_inside_character) {
    return std::nullopt;
  }
  const std::string_view rest = contents.substr(place);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace muster
