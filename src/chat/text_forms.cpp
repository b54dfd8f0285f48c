// str() and repr() of Python, bit for bit. A float takes the shortest digits that read back, which
// Python and std::to_chars agree on; only their layout differs and is redone here. A text inside a
// list is quoted as repr() quotes it, with the quote that needs fewer escapes. Undefined values
// print as nothing, but as a word inside a list. Source: CPython 3.11, floatobject.c and
// unicodeobject.c.

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "chat/float_text.h"
#include "chat/value.h"

// Values as Python writes them. Templates seldom print anything but text and numbers; where one
// prints a list or a map, the model was trained on Python's form of it.

namespace muster {
namespace {

/// Whether repr() shows the character as it is. Source: CPython 3.11, _PyUnicode_IsPrintable.
// Spaces other than the plain one are escaped too: they would look like it.
bool is_printable(UChar32 c) {
  if (c == ' ') return true;
  switch (u_charType(c)) {
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_SURROGATE:
    case U_PRIVATE_USE_CHAR:
    case U_UNASSIGNED:
    case U_LINE_SEPARATOR:
    case U_PARAGRAPH_SEPARATOR:
    case U_SPACE_SEPARATOR:
      return false;
    default:
      return true;
  }
}

void append_escaped(UChar32 c, std::string& out) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c < 0x100) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out += fmt::format("\\U{:08x}", static_cast<unsigned>(c));
  }
}

std::string in_quotes(std::string_view text) {
  const bool prefers_double =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = prefers_double ? '"' : '\'';
  std::string out(1, quote);
  const auto size = static_cast<std::int32_t>(text.size());
  for (std::int32_t at = 0; at < size;) {
    const auto begin = at;
    UChar32 c = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"  // within ICU's macro, g++
    U8_NEXT(text.data(), at, size, c);
#pragma GCC diagnostic pop
    if (c == quote || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c >= 0 && !is_printable(c)) {
      append_escaped(c, out);
    } else {
      out.append(text, static_cast<std::size_t>(begin), static_cast<std::size_t>(at - begin));
    }
  }
  return out + quote;
}

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  // The shortest digits that read back the same, "d.ddde+xx", to be set out as Python does: with an
  // exponent below 1e-4 and from 1e16.
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view all(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const auto mark = all.find('e');
  const int exponent = std::atoi(std::string(all.substr(mark + 1)).c_str());
  const bool is_negative = all.front() == '-';
  std::string digits(all.substr(is_negative ? 1 : 0, mark - (is_negative ? 1 : 0)));
  std::erase(digits, '.');
  std::string out;
  if (exponent < -4 || exponent >= 16) {
    out = digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    out += fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  } else if (exponent < 0) {
    out = "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() < whole) digits.append(whole - digits.size(), '0');
    out = digits.substr(0, whole) + "." + (digits.size() > whole ? digits.substr(whole) : "0");
  }
  return is_negative ? "-" + out : out;
}

std::string text_of(const ChatValue& value) {
  if (const auto* text = value.as_text()) return *text;
  if (value.is_undefined()) return {};
  return quoted_text_of(value);
}

// A tuple of one item has a comma behind it, or it would read as a bracketed value.
std::string quoted_text_of(const ChatValue& value) {
  if (value.is_none()) return "None";
  if (value.is_undefined()) return "Undefined";
  if (const auto* flag = value.as_flag()) return *flag ? "True" : "False";
  if (const auto* integer = value.as_integer()) return std::to_string(*integer);
  if (const auto* real = value.as_float()) return float_text(*real);
  if (const auto* text = value.as_text()) return in_quotes(*text);
  std::string out;
  if (const auto* list = value.as_list()) {
    out = value.is_tuple() ? "(" : "[";
    for (const auto& item : *list) {
      if (out.size() > 1) out += ", ";
      out += quoted_text_of(item);
    }
    if (!value.is_tuple()) return out + "]";
    return out + (list->size() == 1 ? ",)" : ")");
  }
  if (const auto* map = value.as_map()) {
    out = "{";
    for (const auto& [key, item] : *map) {
      if (out.size() > 1) out += ", ";
      out += in_quotes(key) + ": " + quoted_text_of(item);
    }
    return out + "}";
  }
  return value.as_namespace() != nullptr ? "<Namespace>" : "<Macro>";
}

}  // namespace muster
