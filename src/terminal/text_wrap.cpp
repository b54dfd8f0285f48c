// Lines are broken and texts are cut between words only: half a word, or half a number, says
// something else than the whole.
#include "terminal/text_wrap.h"

#include <algorithm>
#include <optional>

#include "terminal/text_width.h"

namespace muster {
namespace {

// Takes the next word off the front of `text`; nullopt when only spaces are left.
std::optional<std::string_view> next_word(std::string_view& text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  const auto end = std::min(text.find(' ', begin), text.size());
  const auto word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace

std::string wrapped(std::string_view text, const Wrap& wrap) {
  const auto clean = printable(text);
  std::string_view rest = clean;
  std::string out(wrap.head);
  auto column = display_width(wrap.head);
  bool is_first = true;  // of its line
  while (const auto word = next_word(rest)) {
    const auto size = display_width(*word);
    if (!is_first && column + 1 + size > wrap.width) {
      out += '\n';
      out.append(wrap.indent, ' ');
      column = wrap.indent;
    } else if (!is_first) {
      out += ' ';
      ++column;
    }
    out += *word;
    column += size;
    is_first = false;
  }
  return out + "\n";
}

std::string wrapped_where_wider(std::string_view text, const Wrap& wrap) {
  auto line = std::string(wrap.head) + printable(text);
  return display_width(line) > wrap.width ? wrapped(text, wrap) : line + "\n";
}

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.append(width - std::min(width, display_width(text)), ' ');
  return out;
}

std::string fit_whole_words(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t kept = 0;  // bytes
  std::string_view rest = text;
  while (next_word(rest)) {
    const auto size = text.size() - rest.size();
    if (display_width(text.substr(0, size)) + 1 > width) break;
    kept = size;
  }
  return std::string(text.substr(0, kept)) + "…";
}

std::size_t widest_word(std::string_view text) {
  std::size_t widest = 0;
  while (const auto word = next_word(text)) widest = std::max(widest, display_width(*word));
  return widest;
}

}  // namespace muster
