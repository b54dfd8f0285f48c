// A recursive descent over the pattern that writes PCRE2's syntax as it goes. It accepts only
// what is known to mean the same in both engines and refuses all else by name: a wrong token id
// would go unnoticed, a refused file does not. Nesting and output are bounded, since each \p{L}
// becomes 12 kB of ranges.

#include "tokenizer/split/regex_translation.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

constexpr std::size_t kDepthMax = 100;           // PCRE2's own limit for parentheses is 250
constexpr std::size_t kTranslatedMax = 1 << 20;  // \p{L} takes 12 kB; a pattern has a dozen such

struct Range {
  char32_t first;
  char32_t last;
};
using Ranges = std::vector<Range>;

// Surrogates are left out: they cannot occur in UTF-8, and PCRE2 refuses them in a class.
template <typename Belongs>
Ranges ranges_of(Belongs belongs) {
  Ranges ranges;
  for (const ClassRange& run : class_ranges()) {
    if (!belongs(run.classes) || general_category(run.classes) == GeneralCategory::Cs) {
      continue;
    }
    if (!ranges.empty() && ranges.back().last + 1 == run.first) {
      ranges.back().last = run.last;
    } else {
      ranges.push_back({run.first, run.last});
    }
  }
  return ranges;
}

/// The categories that a name such as "L" or "Lu" stands for, as a bit each; 0 for any other name.
std::uint32_t categories_of(std::string_view name) {
  constexpr std::array<std::string_view, 30> kNames = {
      "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
      "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};
  std::uint32_t categories = 0;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i] || (name.size() == 1 && name[0] == kNames[i][0])) {
      categories |= 1U << i;
    }
  }
  return categories;
}

void append_ranges(const Ranges& ranges, std::string& out) {
  for (const Range& range : ranges) {
    append_pattern_character(range.first, out);
    if (range.last > range.first) {
      out.push_back('-');
      append_pattern_character(range.last, out);
    }
  }
}

/// Walks the pattern once, from left to right.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    MUSTER_TRY(alternatives(0));
    if (at_ < pattern_.size()) {
      return refused("a parenthesis without its partner");
    }
    return std::move(out_);
  }

 private:
  Error refused(std::string_view what) const {
    return Error{ErrorKind::Unsupported, "tokenizer.json: unsupported pattern, it has " +
                                             std::string(what) + ": " + std::string(pattern_)};
  }
  bool has(std::string_view text) const { return pattern_.substr(at_, text.size()) == text; }
  bool take(std::string_view text) {
    if (!has(text)) {
      return false;
    }
    at_ += text.size();
    return true;
  }

  /// Everything up to the parenthesis that closes this level, which it leaves.
  Status alternatives(std::size_t depth) {
    if (depth > kDepthMax) {
      return refused("too many nested parentheses");
    }
    last_literal_ = 0;
    while (at_ < pattern_.size() && !has(")")) {
      MUSTER_TRY(item(depth));
    }
    return Done{};
  }

  Status item(std::size_t depth) {
    if (out_.size() > kTranslatedMax) {
      return refused("too many classes");
    }
    const char c = pattern_[at_];
    if (c == '(') {
      MUSTER_TRY(group(depth));
      return quantifiers();
    }
    if (c == '|' || c == '^' || c == '$') {
      ++at_;
      out_.push_back(c);
      last_literal_ = 0;
      return Done{};
    }
    if (c == '[') {
      ++at_;
      MUSTER_TRY(bracket());
    } else if (c == '.') {
      ++at_;
      out_.push_back('.');
      last_literal_ = 0;
    } else if (c == '*' || c == '+' || c == '?') {
      return refused("a quantifier with nothing to repeat");
    } else {
      MUSTER_TRY(literal_or_escape());
    }
    return quantifiers();
  }

  Status group(std::size_t depth) {
    const bool was_caseless = is_caseless_;
    if (take("(?i)")) {
      // Elsewhere in a pattern the two disagree on how far the option reaches.
      if (at_ != 4) {
        return refused("(?i) after its beginning");
      }
      is_caseless_ = true;
      out_.append("(?i)");
      return Done{};
    }
    constexpr std::array<std::string_view, 7> kOpenings = {
        "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    bool is_known = false;
    for (const std::string_view opening : kOpenings) {
      if (take(opening)) {
        out_.append(opening);
        is_caseless_ = is_caseless_ || opening == "(?i:";
        is_known = true;
        break;
      }
    }
    if (!is_known) {
      if (has("(?")) {
        return refused("an unknown kind of group");
      }
      ++at_;
      out_.append("(?:");  // nothing refers back to a group, so it need not be kept
    }
    MUSTER_TRY(alternatives(depth + 1));
    if (!take(")")) {
      return refused("an open parenthesis");
    }
    out_.push_back(')');
    last_literal_ = 0;
    is_caseless_ = was_caseless;
    return Done{};
  }

  Status literal_or_escape() {
    if (pattern_[at_] != '\\') {
      const Utf8Char next = utf8_char_at(pattern_, at_);
      at_ += next.size;
      return literal(next.code_point);
    }
    ++at_;
    if (const auto ranges = MUSTER_TRY(class_escape())) {
      if (is_caseless_) {
        return refused("a class without regard to case");
      }
      out_.push_back('[');
      append_ranges(*ranges, out_);
      out_.push_back(']');
      last_literal_ = 0;
      return Done{};
    }
    if (take("A") || take("z")) {
      out_.append(pattern_.substr(at_ - 2, 2));
      last_literal_ = 0;
      return Done{};
    }
    const auto escaped = MUSTER_TRY(character_escape());
    return literal(escaped);
  }

  Status literal(char32_t c) {
    if (is_caseless_) {
      // Source: CaseFolding.txt of Unicode, status F, as far as it ends in ASCII.
      constexpr std::array<std::string_view, 5> kFolded = {"ss", "ff", "fi", "fl", "st"};
      const auto lower = static_cast<char>(c < 0x80 ? lowercase(c) : 0);
      for (const std::string_view folded : kFolded) {
        if (c >= 0x80 || (folded[0] == last_literal_ && folded[1] == lower)) {
          return refused("caseless text that folds to several characters");
        }
      }
      last_literal_ = lower;
    }
    append_pattern_character(c, out_);
    return Done{};
  }

  /// The ranges of \s, \S, \d, \D, \w, \W, \p and \P, whose backslash is taken; nullopt, and
  /// nothing taken, if another escape stands here.
  Result<std::optional<Ranges>> class_escape() {
    const char kind = at_ < pattern_.size() ? pattern_[at_] : '\0';
    const std::string_view classes = "sSdDwWpP";
    if (kind == '\0' || classes.find(kind) == std::string_view::npos) {
      return std::optional<Ranges>();
    }
    ++at_;
    bool is_negated = kind >= 'A' && kind <= 'Z';
    std::uint32_t categories = kind == 'd' || kind == 'D' ? categories_of("Nd") : 0;
    std::uint32_t flags = 0;
    if (kind == 's' || kind == 'S') {
      flags = static_cast<std::uint32_t>(CharacterClass::Space);
    } else if (kind == 'w' || kind == 'W') {
      flags = static_cast<std::uint32_t>(CharacterClass::PatternWord);
    } else if (kind == 'p' || kind == 'P') {
      const std::size_t end = pattern_.find('}', at_);
      if (!take("{") || end == std::string_view::npos) {
        return refused("a property without its name");
      }
      is_negated = take("^") ? !is_negated : is_negated;
      categories = categories_of(pattern_.substr(at_, end - at_));
      if (categories == 0) {
        return refused("an unknown property");
      }
      at_ = end + 1;
    }
    return std::optional<Ranges>(ranges_of([&](std::uint32_t found) {
      const bool belongs = (found & flags) != 0 || ((categories >> (found & 0x1F)) & 1U) != 0;
      return belongs != is_negated;
    }));
  }

  /// The character that an escape stands for; its backslash is taken.
  Result<char32_t> character_escape() {
    if (at_ == pattern_.size()) {
      return refused("a backslash at its end");
    }
    const char c = pattern_[at_++];
    switch (c) {
      case 'n':
        return U'\n';
      case 'r':
        return U'\r';
      case 't':
        return U'\t';
      case 'f':
        return U'\f';
      case 'v':
        return U'\v';
      case 'a':
        return U'\a';
      case 'e':
        return char32_t{0x1B};
      case 'x':
        return take("{") ? hexadecimal(1, 6, 0x10FFFF, "}") : hexadecimal(2, 2, 0x7F, "");
      case 'u':
        return hexadecimal(4, 4, 0xFFFF, "");
      default:
        break;
    }
    const auto byte = static_cast<unsigned char>(c);
    const bool is_sign = byte < 0x80 && !is_letter(character_classes(byte)) &&
                         !is_number(character_classes(byte)) && c != '_';
    if (!is_sign) {
      return refused(std::string("the escape \\") + c);
    }
    return static_cast<char32_t>(byte);
  }

  Result<char32_t> hexadecimal(std::size_t digits_min, std::size_t digits_max, char32_t value_max,
                               std::string_view close) {
    char32_t value = 0;
    std::size_t digits = 0;
    for (; digits < digits_max && at_ < pattern_.size(); ++digits, ++at_) {
      const char c = pattern_[at_];
      if (c >= '0' && c <= '9') {
        value = value * 16 + static_cast<char32_t>(c - '0');
      } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
        value = value * 16 + static_cast<char32_t>((c | 0x20) - 'a' + 10);
      } else {
        break;
      }
    }
    const bool is_surrogate = value >= 0xD800 && value < 0xE000;
    if (digits < digits_min || value > value_max || is_surrogate || !take(close)) {
      return refused("a hexadecimal escape that is no character");
    }
    return value;
  }

  /// A bracket class, whose opening is taken.
  Status bracket() {
    if (is_caseless_) {
      return refused("a class without regard to case");
    }
    last_literal_ = 0;
    out_.append(take("^") ? "[^" : "[");
    if (has("]")) {
      return refused("an empty class");
    }
    while (!take("]")) {
      if (at_ == pattern_.size() || has("[") || has("&&")) {
        return refused("a class that is open or nested");
      }
      MUSTER_TRY(bracket_item());
    }
    out_.push_back(']');
    return Done{};
  }

  // A class within a bracket is written out as its ranges, so only a dash behind it remains to
  // be told apart from one that stands for itself.
  Status bracket_item() {
    if (out_.size() > kTranslatedMax) {
      return refused("too many classes");
    }
    if (has("\\")) {
      ++at_;
      if (const auto ranges = MUSTER_TRY(class_escape())) {
        append_ranges(*ranges, out_);
        return has("-") && !has("-]") ? Status(refused("a range that begins with a class"))
                                      : Done{};
      }
      --at_;
    }
    const char32_t first = MUSTER_TRY(bracket_character());
    append_pattern_character(first, out_);
    if (!has("-") || has("-]")) {
      return Done{};
    }
    ++at_;
    if (has("[") || at_ == pattern_.size()) {
      return refused("a class that is open or nested");
    }
    const char32_t last = MUSTER_TRY(bracket_character());
    if (last < first) {
      return refused("a range whose end is before its beginning");
    }
    out_.push_back('-');
    append_pattern_character(last, out_);
    return Done{};
  }

  Result<char32_t> bracket_character() {
    if (take("\\")) {
      return character_escape();
    }
    const Utf8Char next = utf8_char_at(pattern_, at_);
    at_ += next.size;
    return next.code_point;
  }

  Status quantifiers() {
    if (at_ < pattern_.size() && (has("*") || has("+") || has("?"))) {
      out_.push_back(pattern_[at_++]);
      if (at_ < pattern_.size() && (has("+") || has("?"))) {
        out_.push_back(pattern_[at_++]);  // possessive or lazy
      }
    } else if (has("{")) {
      MUSTER_TRY(interval());
    } else {
      return Done{};
    }
    last_literal_ = 0;
    return has("*") || has("+") || has("?") || has("{") ? Status(refused("a repeated quantifier"))
                                                        : Done{};
  }

  /// {n}, {n,}, {,m} or {n,m}, greedy.
  Status interval() {
    const std::size_t end = pattern_.find('}', at_);
    const std::string_view body =
        end == std::string_view::npos ? "" : pattern_.substr(at_ + 1, end - at_ - 1);
    const std::size_t comma = body.find(',');
    const bool is_valid =
        !body.empty() && body != "," && body.size() <= 9 &&
        body.find_first_not_of("0123456789,") == std::string_view::npos &&
        body.find(',', comma == std::string_view::npos ? 0 : comma + 1) == std::string_view::npos;
    if (!is_valid) {
      return refused("a brace that is no interval");
    }
    out_.append(body[0] == ',' ? "{0" : "{").append(body).push_back('}');
    at_ = end + 1;
    return Done{};
  }

  const std::string_view pattern_;
  std::size_t at_ = 0;
  std::string out_;
  bool is_caseless_ = false;
  char last_literal_ = 0;  // within caseless text, to see what folds together
};

}  // namespace

Result<std::string> translate_pattern(std::string_view oniguruma_pattern) {
  return Translation(oniguruma_pattern).run();
}

void append_pattern_character(char32_t c, std::string& out) {
  const std::uint32_t classes = character_classes(c);
  if (c < 0x80 && (is_letter(classes) || is_number(classes))) {
    out.push_back(static_cast<char>(c));
    return;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  out.append("\\x{");
  for (int shift = 20; shift >= 0; shift -= 4) {
    out.push_back(kDigits[(c >> shift) & 0xF]);
  }
  out.push_back('}');
}

}  // namespace muster
