#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

/// One decoded character and how many bytes it takes.
struct Utf8Char {
  char32_t code_point = 0;
  std::size_t size = 1;
};

/// The character that begins at `at` in valid UTF-8. On a broken sequence it still stays inside the
/// text and takes at least one byte, so a loop over it always ends.
inline Utf8Char utf8_char_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const char32_t lead = byte(at);
  const std::size_t left = text.size() - at;
  if (lead < 0x80) {
    return {lead, 1};
  }
  if (lead < 0xE0) {
    return {((lead & 0x1F) << 6) | (byte(at + 1) & 0x3F), left < 2 ? left : 2};
  }
  if (lead < 0xF0) {
    return {((lead & 0x0F) << 12) | ((byte(at + 1) & 0x3F) << 6) | (byte(at + 2) & 0x3F),
            left < 3 ? left : 3};
  }
  return {((lead & 0x07) << 18) | ((byte(at + 1) & 0x3F) << 12) | ((byte(at + 2) & 0x3F) << 6) |
              (byte(at + 3) & 0x3F),
          left < 4 ? left : 4};
}

/// The character that ends just before `end`; `end` is at least 1.
inline Utf8Char utf8_char_before(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  return {utf8_char_at(text, begin).code_point, end - begin};
}

/// Calls `visit(char32_t, std::size_t begin, std::size_t end)` for each character in order.
template <typename Visit>
void for_each_utf8_char(std::string_view text, Visit&& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_char_at(text, at);
    visit(next.code_point, at, at + next.size);
    at += next.size;
  }
}

inline void append_utf8(char32_t code_point, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

/// How many bytes from the front are ASCII; eight at a time.
std::size_t ascii_prefix_size(std::string_view text);

}  // namespace muster
