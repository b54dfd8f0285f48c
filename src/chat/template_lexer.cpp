// One pass from front to back; each character is looked at a few times at most. White space is
// decided here and not by the parser: whether a tag stands alone on its line depends on text that
// the parser never sees. trim_blocks and lstrip_blocks are on, as transformers sets them. Source:
// Jinja 3.1, lexer.py; transformers, chat_template_utils.py.

#include "chat/template_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "chat/text_work.h"

// Jinja's lexer is a table of regular expressions; this is what they come to. Outside of tags the
// next "{{", "{%" or "{#" is looked for; inside, tokens are read until the tag ends at a place
// where no bracket is open.

namespace muster {
namespace {

using Kind = TemplateToken::Kind;

constexpr std::array<std::string_view, 26> kOperators{
    "//", "**", "==", "!=", "<=", ">=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ",", ";"};

bool is_name_start(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

/// Line ends as line feeds, without one at the end.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<TemplateToken>> run() {
    while (at_ < source_.size()) MUSTER_TRY(read_data_and_tag());
    add(Kind::End, {});
    return std::move(tokens_);
  }

 private:
  Error fault(std::string_view what) const {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("chat template, line {}: {}", line_, what)};
  }

  void add(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool sees(std::string_view text) const { return rest().starts_with(text); }

  void advance(std::size_t size) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto end = begin + static_cast<std::ptrdiff_t>(size);
    line_ += static_cast<std::uint32_t>(std::count(begin, end, '\n'));
    at_ += size;
    starts_line_ = size > 0 && source_[at_ - 1] == '\n';
  }

  void skip_space() { advance(leading_space_size(rest())); }

  // Outside of tags any other brace is text, which templates of JSON rely on.
  std::size_t find_tag() const {
    for (std::size_t i = at_; i + 1 < source_.size(); ++i) {
      if (source_[i] != '{') continue;
      const char next = source_[i + 1];
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return source_.size();
  }

  /// The data before a tag, less the white space that the tag takes: all with `-`; with neither
  /// sign, before a statement or comment, what stands on its line if nothing else does.
  std::string_view stripped(std::string_view data, char sign, bool is_output) const {
    if (sign == '-') return data.substr(0, data.size() - trailing_space_size(data));
    if (sign == '+' || is_output) return data;
    const auto line = data.rfind('\n');
    const auto begin = line == std::string_view::npos ? 0 : line + 1;
    if (begin == 0 && !starts_line_) return data;
    const auto space = data.substr(begin);
    return leading_space_size(space) == space.size() ? data.substr(0, begin) : data;
  }

  Status read_data_and_tag() {
    const auto tag = find_tag();
    const auto data = std::string_view(source_).substr(at_, tag - at_);
    if (tag == source_.size()) {
      if (!data.empty()) add(Kind::Data, std::string(data));
      advance(data.size());
      return Done{};
    }
    const char kind = source_[tag + 1];
    const char after = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = after == '-' || after == '+' ? after : '\0';
    const auto kept = stripped(data, sign, kind == '{');
    if (!kept.empty()) add(Kind::Data, std::string(kept));
    advance(data.size() + 2 + (sign != '\0' ? 1 : 0));
    if (kind == '#') return read_comment();
    if (kind == '%') {
      if (const auto size = raw_tag_size("raw")) return read_raw(*size);
    }
    return read_tag(kind == '{');
  }

  /// Behind the end of a statement or comment: `-` takes all white space, else one line feed goes
  /// unless there is a `+`.
  void finish_tag(char sign, bool is_output) {
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && !is_output && sees("\n")) {
      advance(1);
    }
  }

  // A comment does not nest: its first end is its end.
  Status read_comment() {
    const auto end = source_.find("#}", at_);
    if (end == std::string::npos) return fault("a comment does not end");
    const char before = end > at_ ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    finish_tag(before == '-' || before == '+' ? before : '\0', /*is_output=*/false);
    return Done{};
  }

  /// The size of what is left of a tag that holds this name alone, its end included.
  std::optional<std::size_t> raw_tag_size(std::string_view name) const {
    auto text = rest();
    text.remove_prefix(leading_space_size(text));
    if (!text.starts_with(name)) return std::nullopt;
    text.remove_prefix(name.size());
    text.remove_prefix(leading_space_size(text));
    if (text.starts_with("-") || text.starts_with("+")) text.remove_prefix(1);
    if (!text.starts_with("%}")) return std::nullopt;
    return rest().size() - text.size() + 2;
  }

  // Nothing inside counts as a tag but the end of the block, which must name it alone.
  Status read_raw(std::size_t tag_size) {
    const char before = source_[at_ + tag_size - 3];
    advance(tag_size);
    if (before == '-') skip_space();
    const auto begin = at_;
    while (true) {
      const auto tag = source_.find("{%", at_);
      if (tag == std::string::npos) return fault("a raw block does not end");
      advance(tag + 2 - at_);
      const char sign = sees("-") || sees("+") ? source_[at_] : '\0';
      if (sign != '\0') advance(1);
      const auto size = raw_tag_size("endraw");
      if (!size) continue;
      starts_line_ = false;  // the tag that opens the block stands before
      const auto data =
          stripped(std::string_view(source_).substr(begin, tag - begin), sign, /*is_output=*/false);
      if (!data.empty()) add(Kind::Data, std::string(data));
      const char last = source_[at_ + *size - 3];
      advance(*size);
      finish_tag(last == '-' || last == '+' ? last : '\0', /*is_output=*/false);
      return Done{};
    }
  }

  // The end of a tag counts only outside of brackets: a map's "}}" must not end it.
  Status read_tag(bool is_output) {
    add(is_output ? Kind::OutputBegin : Kind::StatementBegin, {});
    const std::string_view end = is_output ? "}}" : "%}";
    std::string open;  // brackets
    while (true) {
      skip_space();
      if (at_ >= source_.size()) return fault("a tag does not end");
      if (open.empty()) {
        const char sign = sees("-") || (sees("+") && !is_output) ? source_[at_] : '\0';
        if (rest().substr(sign != '\0' ? 1 : 0).starts_with(end)) {
          add(is_output ? Kind::OutputEnd : Kind::StatementEnd, {});
          advance(end.size() + (sign != '\0' ? 1 : 0));
          finish_tag(sign, is_output);
          return Done{};
        }
      }
      MUSTER_TRY(read_token(open));
    }
  }

  Status read_token(std::string& open) {
    const auto c = static_cast<unsigned char>(source_[at_]);
    if (c == '\'' || c == '"') return read_text(static_cast<char>(c));
    if (is_digit(c)) return read_number();
    if (is_name_start(c)) {
      std::size_t size = 1;
      while (at_ + size < source_.size()) {
        const auto next = static_cast<unsigned char>(source_[at_ + size]);
        if (!is_name_start(next) && !is_digit(next)) break;
        ++size;
      }
      add(Kind::Name, std::string(rest().substr(0, size)));
      advance(size);
      return Done{};
    }
    const auto* found = std::find_if(kOperators.begin(), kOperators.end(),
                                     [&](std::string_view each) { return sees(each); });
    if (found == kOperators.end()) {
      return fault(fmt::format("an unexpected character: \"{}\"", rest().substr(0, 1)));
    }
    MUSTER_TRY(balance(*found, open));
    add(Kind::Operator, std::string(*found));
    advance(found->size());
    return Done{};
  }

  Status balance(std::string_view text, std::string& open) const {
    constexpr std::string_view kOpening = "([{";
    constexpr std::string_view kClosing = ")]}";
    if (kOpening.find(text) != std::string_view::npos) open += text;
    const auto closing = kClosing.find(text);
    if (closing == std::string_view::npos) return Done{};
    if (open.empty() || open.back() != kOpening[closing]) {
      return fault(fmt::format("a bracket that was not opened: {}", text));
    }
    open.pop_back();
    return Done{};
  }

  // A point belongs to the number only with a digit behind it; else it begins an attribute.
  Status read_number() {
    std::size_t size = 0;
    const auto take_digits = [&] {
      while (at_ + size < source_.size() &&
             (is_digit(static_cast<unsigned char>(source_[at_ + size])) ||
              source_[at_ + size] == '_')) {
        ++size;
      }
    };
    const auto digit_at = [&](std::size_t i) {
      return at_ + i < source_.size() && is_digit(static_cast<unsigned char>(source_[at_ + i]));
    };
    take_digits();
    bool is_float = false;
    if (rest().substr(size).starts_with(".") && digit_at(size + 1)) {
      is_float = true;
      ++size;
      take_digits();
    }
    const auto mark = rest().substr(size);
    if (mark.starts_with("e") || mark.starts_with("E")) {
      const std::size_t sign = mark.size() > 1 && (mark[1] == '+' || mark[1] == '-') ? 1 : 0;
      if (digit_at(size + 1 + sign)) {
        is_float = true;
        size += 1 + sign;
        take_digits();
      }
    }
    std::string text(rest().substr(0, size));
    std::erase(text, '_');
    add(is_float ? Kind::Float : Kind::Integer, std::move(text));
    advance(size);
    return Done{};
  }

  // An escaped quote does not end the text, so a backslash is skipped together with what follows
  // it.
  Status read_text(char quote) {
    auto end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return fault("a text does not end");
    auto text = unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
    if (!text) return fault(text.error().message);
    add(Kind::Text, *std::move(text));
    advance(end + 1 - at_);
    return Done{};
  }

  const std::string source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool starts_line_ = true;  // what was read last ended a line, or nothing was
  std::vector<TemplateToken> tokens_;
};

}  // namespace

Result<std::vector<TemplateToken>> lex_template(std::string_view source) {
  return Lexer(normalized(source)).run();
}

}  // namespace muster
