// The three patterns that most models use, as code. They need no backtracking: each branch is
// decided by the first few characters. Where two alternatives could match, the tests keep the
// pattern's order, since the first one wins. Text beyond ASCII takes the class table, so that
// the pieces agree with the library's Unicode version.

#include "tokenizer/split/known_patterns.h"

#include <array>

#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

/// The four classes that the patterns tell apart; every character is in one.
enum class Kind : std::uint8_t { Letter, Number, Space, Other };

Kind kind_of_classes(std::uint32_t classes) {
  if (is_letter(classes)) {
    return Kind::Letter;
  }
  if (is_number(classes)) {
    return Kind::Number;
  }
  return has_class(classes, CharacterClass::Space) ? Kind::Space : Kind::Other;
}

constexpr std::array<Kind, 128> make_ascii_kinds() {
  std::array<Kind, 128> kinds{};
  for (unsigned c = 0; c < 128; ++c) {
    const bool is_ascii_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool is_ascii_space = c == ' ' || (c >= '\t' && c <= '\r');
    kinds[c] = is_ascii_letter          ? Kind::Letter
               : (c >= '0' && c <= '9') ? Kind::Number
               : is_ascii_space         ? Kind::Space
                                        : Kind::Other;
  }
  return kinds;
}
constexpr std::array<Kind, 128> kAsciiKinds = make_ascii_kinds();

struct Character {
  Kind kind = Kind::Other;
  std::size_t end = 0;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) {
    return {kAsciiKinds[byte], at + 1};
  }
  const Utf8Char c = utf8_char_at(text, at);
  return {kind_of_classes(character_classes(c.code_point)), at + c.size};
}

/// Where the run of one kind that goes on at `at` ends.
std::size_t run_end(std::string_view text, std::size_t at, Kind kind) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != kind) {
      break;
    }
    at = next.end;
  }
  return at;
}

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

/// Where an English ending ('s, 't, 're, 've, 'm, 'll, 'd) stops; `at` if there is none. Caseless
/// text has one letter more: U+017F folds to s.
std::size_t contraction_end(std::string_view text, std::size_t at, bool is_caseless) {
  if (text[at] != '\'' || at + 1 >= text.size()) {
    return at;
  }
  const auto letter = [&](std::size_t i) {
    const char c = i < text.size() ? text[i] : '\0';
    return is_caseless && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  const char first = letter(at + 1);
  const char second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') {
    return at + 2;
  }
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
      (first == 'l' && second == 'l')) {
    return at + 3;
  }
  return is_caseless && text.substr(at + 1, 2) == "\xC5\xBF" ? at + 3 : at;
}

/// \s+(?!\S)|\s+ : a run of white space leaves its last character to what follows, if it has two.
std::size_t space_end(std::string_view text, std::size_t begin) {
  const std::size_t end = run_end(text, begin, Kind::Space);
  if (end == text.size()) {
    return end;
  }
  const std::size_t last = end - utf8_char_before(text, end).size;
  return last > begin ? last : end;
}

// A space leads any word, number or run of signs (" ?" in the pattern), so the kind of the piece
// is that of the character behind it.
std::size_t gpt2_piece_end(std::string_view text, std::size_t begin) {
  if (const std::size_t end = contraction_end(text, begin, false); end != begin) {
    return end;
  }
  Character first = character_at(text, begin);
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    const Character second = character_at(text, begin + 1);
    first = second.kind != Kind::Space ? second : first;
  }
  return first.kind == Kind::Space ? space_end(text, begin) : run_end(text, first.end, first.kind);
}

/// \s*[\r\n]+|\s+(?!\S)|\s+ : white space up to its last line end, if it has one.
std::size_t line_space_end(std::string_view text, std::size_t begin) {
  const std::size_t end = run_end(text, begin, Kind::Space);
  for (std::size_t at = end; at > begin; --at) {
    if (is_line_end(text[at - 1])) {
      return at;
    }
  }
  return space_end(text, begin);
}

std::size_t number_end(std::string_view text, Character first, std::size_t digits_max) {
  std::size_t end = first.end;
  for (std::size_t digits = 1; digits < digits_max && end < text.size(); ++digits) {
    const Character next = character_at(text, end);
    if (next.kind != Kind::Number) {
      break;
    }
    end = next.end;
  }
  return end;
}

// Unlike GPT-2's, this pattern lets one sign of any kind lead a word, limits the digits of a
// number and gives line ends to the signs before them. Llama 3 and Qwen 2 differ in the digits
// only.
std::size_t llama3_piece_end(std::string_view text, std::size_t begin, std::size_t digits_max) {
  if (const std::size_t end = contraction_end(text, begin, true); end != begin) {
    return end;
  }
  const Character first = character_at(text, begin);
  if (first.kind == Kind::Letter) {
    return run_end(text, first.end, Kind::Letter);
  }
  if (first.kind == Kind::Number) {
    return number_end(text, first, digits_max);
  }
  const bool has_second = first.end < text.size();
  const Character second = has_second ? character_at(text, first.end) : first;
  // [^\r\n\p{L}\p{N}]?\p{L}+ : any one sign or space may lead a word.
  if (has_second && second.kind == Kind::Letter && !is_line_end(text[begin])) {
    return run_end(text, second.end, Kind::Letter);
  }
  const bool is_spaced = text[begin] == ' ' && has_second && second.kind == Kind::Other;
  if (first.kind == Kind::Space && !is_spaced) {
    return line_space_end(text, begin);
  }
  std::size_t end = run_end(text, is_spaced ? second.end : first.end, Kind::Other);
  while (end < text.size() && is_line_end(text[end])) {
    ++end;
  }
  return end;
}

}  // namespace

std::optional<KnownPattern> known_pattern(std::string_view pattern) {
  if (pattern == kGpt2Pattern) {
    return KnownPattern::Gpt2;
  }
  if (pattern == kLlama3Pattern) {
    return KnownPattern::Llama3;
  }
  return pattern == kQwen2Pattern ? std::optional(KnownPattern::Qwen2) : std::nullopt;
}

std::size_t piece_end(KnownPattern pattern, std::string_view text, std::size_t begin) {
  switch (pattern) {
    case KnownPattern::Gpt2:
      return gpt2_piece_end(text, begin);
    case KnownPattern::Llama3:
      return llama3_piece_end(text, begin, 3);
    case KnownPattern::Qwen2:
      return llama3_piece_end(text, begin, 1);
  }
  return text.size();
}

}  // namespace muster
