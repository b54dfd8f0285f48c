// Python's methods on texts, for UTF-8. White space is Python's set, which is neither ASCII's nor
// Unicode's. Case comes from ICU without a language, so the machine's settings do not matter.
// Places are counted in characters by the first byte of each; ICU is asked only where a character's
// class or case decides. Cost is linear in the texts, but for the set of stripped characters, which
// is sorted. Source: CPython 3.11, unicodeobject.c.

#include "chat/text_work.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstring>

namespace muster {
namespace {

bool is_space(UChar32 c) {
  if (c <= 0x20) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  if (c == 0x85 || c == 0xA0 || c == 0x1680 || c == 0x2028 || c == 0x2029) return true;
  return (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Whether a line ends there. Source: as leading_space_size, _PyUnicode_IsLinebreak.
bool ends_line(UChar32 c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

struct Character {
  UChar32 code_point;
  std::size_t size;
};

// A character has four bytes at most, so a window of eight is enough however long the text is.
Character first_of(std::string_view text) {
  std::int32_t at = 0;
  UChar32 c = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"  // within ICU's macro, g++
  U8_NEXT(text.data(), at, static_cast<std::int32_t>(std::min<std::size_t>(text.size(), 8)), c);
#pragma GCC diagnostic pop
  return {c, static_cast<std::size_t>(at)};
}

Character last_of(std::string_view text) {
  const auto from = text.size() > 8 ? text.size() - 8 : 0;
  const auto tail = text.substr(from);
  auto at = static_cast<std::int32_t>(tail.size());
  UChar32 c = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"  // within ICU's macro, g++
  U8_PREV(tail.data(), 0, at, c);
#pragma GCC diagnostic pop
  return {c, tail.size() - static_cast<std::size_t>(at)};
}

template <typename Takes>
std::size_t leading_size(std::string_view text, const Takes& takes) {
  std::size_t size = 0;
  while (size < text.size()) {
    const auto next = first_of(text.substr(size));
    if (!takes(next.code_point)) break;
    size += next.size;
  }
  return size;
}

template <typename Takes>
std::size_t trailing_size(std::string_view text, const Takes& takes) {
  std::size_t size = 0;
  while (size < text.size()) {
    const auto next = last_of(text.substr(0, text.size() - size));
    if (!takes(next.code_point)) break;
    size += next.size;
  }
  return size;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

/// Where the first character at or behind a byte begins; the text's size: there is none.
std::size_t character_from(std::string_view text, std::size_t at) {
  while (at < text.size() && !begins_character(text[at])) ++at;
  return at;
}

/// The places of the first and behind the last item of a slice, in the direction of its step.
struct SliceBounds {
  std::int64_t first;
  std::int64_t last;
};

/// Source: CPython 3.11, PySlice_AdjustIndices.
SliceBounds slice_bounds(std::size_t count, std::optional<std::int64_t> begin,
                         std::optional<std::int64_t> end, std::int64_t step) {
  const auto size = static_cast<std::int64_t>(count);
  const auto placed = [&](std::optional<std::int64_t> at, std::int64_t absent) {
    if (!at) return absent;
    if (*at < 0) return std::max(*at + size, std::int64_t{step < 0 ? -1 : 0});
    return std::min(*at, step < 0 ? size - 1 : size);
  };
  return {placed(begin, step < 0 ? size - 1 : 0), placed(end, step < 0 ? -1 : size)};
}

icu::UnicodeString wide(std::string_view text) {
  return icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
}

std::string narrow(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

}  // namespace

std::size_t leading_space_size(std::string_view text) { return leading_size(text, is_space); }
std::size_t trailing_space_size(std::string_view text) { return trailing_size(text, is_space); }

std::string_view stripped_text(std::string_view text, StripEnds ends,
                               std::optional<std::string_view> characters) {
  std::vector<UChar32> wanted;
  for (auto left = characters.value_or(std::string_view()); !left.empty();) {
    const auto next = first_of(left);
    wanted.push_back(next.code_point);
    left.remove_prefix(next.size);
  }
  std::sort(wanted.begin(), wanted.end());
  const auto takes = [&](UChar32 c) {
    return characters ? std::binary_search(wanted.begin(), wanted.end(), c) : is_space(c);
  };
  if (ends != StripEnds::Right) text.remove_prefix(leading_size(text, takes));
  if (ends != StripEnds::Left) text.remove_suffix(trailing_size(text, takes));
  return text;
}

std::string lower_text(std::string_view text) { return narrow(wide(text).toLower("")); }
std::string upper_text(std::string_view text) { return narrow(wide(text).toUpper("")); }

std::string capitalized_text(std::string_view text) {
  if (text.empty()) return {};
  const auto first = first_of(text);
  icu::UnicodeString title(u_totitle(first.code_point));
  return narrow(title) + lower_text(text.substr(first.size));
}

// The marks that begin a word are those of Jinja's filter, not those of str.title: an apostrophe
// does not begin one.
std::string title_text(std::string_view text) {
  std::string out;
  const auto begins_word = [](UChar32 c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  while (!text.empty()) {
    const auto marks = leading_size(text, begins_word);
    out.append(text.substr(0, marks));
    text.remove_prefix(marks);
    if (text.empty()) break;
    const auto word =
        text.substr(0, leading_size(text, [&](UChar32 c) { return !begins_word(c); }));
    const auto first = first_of(word);
    out += upper_text(word.substr(0, first.size)) + lower_text(word.substr(first.size));
    text.remove_prefix(word.size());
  }
  return out;
}

// The end counts as a last place, so the size of any character is a difference of two.
std::vector<std::size_t> character_places(std::string_view text) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i])) places.push_back(i);
  }
  places.push_back(text.size());
  return places;
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::optional<std::string_view> character_at(std::string_view text, std::int64_t place) {
  const auto count = static_cast<std::int64_t>(character_count(text));
  auto left = place < 0 ? place + count : place;
  if (left < 0 || left >= count) return std::nullopt;
  auto at = character_from(text, 0);
  for (; left > 0; --left) at = character_from(text, at + 1);
  return text.substr(at, character_from(text, at + 1) - at);
}

std::vector<std::size_t> slice_places(std::size_t count, std::optional<std::int64_t> begin,
                                      std::optional<std::int64_t> end, std::int64_t step) {
  const auto bounds = slice_bounds(count, begin, end, step);
  std::vector<std::size_t> places;
  for (auto i = bounds.first; step < 0 ? i > bounds.last : i < bounds.last;) {
    places.push_back(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return places;
}

// Walks towards the end of the slice, forwards or backwards, as a list of places would be eight
// times as large as the text.
std::string sliced_text(std::string_view text, std::optional<std::int64_t> begin,
                        std::optional<std::int64_t> end, std::int64_t step) {
  const auto count = character_count(text);
  const auto bounds = slice_bounds(count, begin, end, step);
  std::string out;
  if (step > 0) {
    auto at = character_from(text, 0);
    for (std::int64_t i = 0; i < bounds.last; ++i) {
      const auto next = character_from(text, at + 1);
      if (i >= bounds.first && (i - bounds.first) % step == 0) {
        out.append(text.substr(at, next - at));
      }
      at = next;
    }
    return out;
  }
  auto at = text.size();
  for (auto i = static_cast<std::int64_t>(count) - 1; i > bounds.last; --i) {
    const auto next = at;
    do {
      --at;
    } while (!begins_character(text[at]));
    if (i <= bounds.first && (i - bounds.first) % step == 0) {
      out.append(text.substr(at, next - at));
    }
  }
  return out;
}

// memmem's time is linear whatever the texts are; that of std::string::find is their product.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size() || part.size() > text.size() - from) return std::string_view::npos;
  if (part.empty()) return from;
  const auto* found = static_cast<const char*>(
      ::memmem(text.data() + from, text.size() - from, part.data(), part.size()));
  return found == nullptr ? std::string_view::npos : static_cast<std::size_t>(found - text.data());
}

std::size_t find_last_text(std::string_view text, std::string_view part) {
  if (part.size() > text.size()) return std::string_view::npos;  // before either is copied
  const std::string backwards(text.rbegin(), text.rend());
  const auto found = find_text(backwards, std::string(part.rbegin(), part.rend()), 0);
  return found == std::string_view::npos ? found : text.size() - found - part.size();
}

TextLine first_line(std::string_view text) {
  const auto size = leading_size(text, [](UChar32 c) { return !ends_line(c); });
  if (size == text.size()) return {text, size};
  const auto end = text.substr(size);
  return {text.substr(0, size), size + (end.starts_with("\r\n") ? 2 : first_of(end).size)};
}

// Source: CPython 3.11, unicode_isdigit: also what has a digit's value without being a decimal one.
bool is_digits(std::string_view text) {
  const auto size = leading_size(text, [](UChar32 c) {
    const auto kind = u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE);
    return kind == U_NT_DECIMAL || kind == U_NT_DIGIT;
  });
  return !text.empty() && size == text.size();
}

std::size_t most_parts(std::string_view text, std::optional<std::string_view> separator) {
  std::size_t count = 1;
  if (!separator) {
    // Bytes that white space can begin with.
    const auto may_begin_space = [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte <= 0x20 || byte >= 0xC2;
    };
    return count +
           static_cast<std::size_t>(std::count_if(text.begin(), text.end(), may_begin_space));
  }
  for (std::size_t at = 0; (at = find_text(text, *separator, at)) != std::string_view::npos;) {
    ++count;
    at += separator->size();
  }
  return count;
}

// An empty text is found before each character and at the end, as in Python.
std::string replaced_text(std::string_view text, std::string_view from, std::string_view to,
                          std::optional<std::int64_t> count) {
  auto left = count && *count >= 0 ? *count : INT64_MAX;
  std::string out;
  if (from.empty()) {
    for (std::size_t begin = 0; begin < text.size();) {
      const auto next = character_from(text, begin + 1);
      if (left-- > 0) out.append(to);
      out.append(text.substr(begin, next - begin));
      begin = next;
    }
    if (left > 0) out.append(to);
    return out;
  }
  std::size_t at = 0;
  for (; left > 0; --left) {
    const auto found = find_text(text, from, at);
    if (found == std::string_view::npos) break;
    out.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return out.append(text.substr(at));
}

// Without a separator white space separates in runs, and none of it is left at the ends but behind
// the part at which the count ends.
std::vector<std::string> split_text(std::string_view text,
                                    std::optional<std::string_view> separator,
                                    std::optional<std::int64_t> count) {
  auto left = count && *count >= 0 ? *count : INT64_MAX;
  std::vector<std::string> parts;
  if (separator) {
    for (; left > 0; --left) {
      const auto found = find_text(text, *separator, 0);
      if (found == std::string_view::npos) break;
      parts.emplace_back(text.substr(0, found));
      text.remove_prefix(found + separator->size());
    }
    parts.emplace_back(text);
    return parts;
  }
  while (true) {
    text.remove_prefix(leading_space_size(text));
    if (text.empty()) return parts;
    if (left-- <= 0) {
      parts.emplace_back(text);
      return parts;
    }
    const auto size = leading_size(text, [](UChar32 c) { return !is_space(c); });
    parts.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
}

namespace {

std::optional<std::uint32_t> digits_of(std::string_view text, std::size_t count, unsigned base) {
  if (text.size() < count) return std::nullopt;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 99;
    if (digit >= static_cast<int>(base)) return std::nullopt;
    value = value * base + static_cast<std::uint32_t>(digit);
  }
  return value;
}

/// The character of a one-letter escape; nullopt for any other.
std::optional<char> simple_escape(char c) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  const auto at = kLetters.find(c);
  if (at == std::string_view::npos) return std::nullopt;
  return kMeanings[at];
}

}  // namespace

// A letter that is no escape keeps its backslash, as in Python. A surrogate is refused because
// UTF-8 has no form for it.
Result<std::string> unescaped(std::string_view literal) {
  std::string out;
  while (!literal.empty()) {
    const auto slash = literal.find('\\');
    out.append(literal.substr(0, slash));
    if (slash == std::string_view::npos || slash + 1 >= literal.size()) break;
    const char c = literal[slash + 1];
    literal.remove_prefix(slash + 2);
    const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (const auto simple = simple_escape(c)) {
      out.push_back(*simple);
    } else if (c == '\n') {
      continue;
    } else if (size > 0) {
      const auto value = digits_of(literal, size, 16);
      if (!value || *value > 0x10FFFF || (*value >= 0xD800 && *value <= 0xDFFF)) {
        return Error{ErrorKind::InvalidArgument, std::string("a broken escape: \\") + c};
      }
      icu::UnicodeString(static_cast<UChar32>(*value)).toUTF8String(out);
      literal.remove_prefix(size);
    } else if (c >= '0' && c <= '7') {
      std::size_t count = 0;
      while (count < 2 && count < literal.size() && literal[count] >= '0' &&
             literal[count] <= '7') {
        ++count;
      }
      const auto value =
          digits_of(std::string(1, c) + std::string(literal.substr(0, count)), count + 1, 8);
      icu::UnicodeString(static_cast<UChar32>(*value)).toUTF8String(out);
      literal.remove_prefix(count);
    } else if (c == 'N') {
      return Error{ErrorKind::InvalidArgument, "a character by its name: \\N"};
    } else {
      out.push_back('\\');
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace muster
