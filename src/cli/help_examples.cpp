// Examples are there to be copied: a narrow terminal may break them only where a shell puts them
// together again. A word in quotes is never broken. The comment of a command that is broken moves
// in front of it, because behind a line that goes on a shell would not take it as one.
#include "cli/help_examples.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

constexpr std::string_view kExampleIndent = "  ";
constexpr std::string_view kContinuedIndent = "      ";
constexpr std::string_view kContinued = " \\";
constexpr std::string_view kComment = "  # ";

// The words of a command line, quotes and all: a space within quotes is part of its word.
std::vector<std::string> shell_words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  for (const char letter : line) {
    if (quote == 0 && letter == ' ') {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
      continue;
    }
    if (quote == 0 && (letter == '"' || letter == '\'')) {
      quote = letter;
    } else if (letter == quote) {
      quote = 0;
    }
    word += letter;
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::string broken_command(std::string_view command, std::size_t width) {
  std::string out;
  std::string line(kExampleIndent);
  bool is_first = true;  // of its line
  for (const auto& word : shell_words_of(command)) {
    const auto size = display_width(line) + (is_first ? 0 : 1) + display_width(word);
    if (!is_first && size + kContinued.size() > width) {
      out += line + std::string(kContinued) + "\n";
      line = kContinuedIndent;
      is_first = true;
    }
    line += (is_first ? "" : " ") + word;
    is_first = false;
  }
  return out + line + "\n";
}

// A command with its continued lines, as they are written in the spec.
std::string command_text(const std::vector<std::string>& lines, std::size_t width) {
  std::string as_is;
  std::string joined;
  bool has_room = true;
  for (const auto& line : lines) {
    as_is += line + "\n";
    has_room = has_room && display_width(line) <= width;
    const bool goes_on = line.ends_with(kContinued);
    joined += line.substr(0, line.size() - (goes_on ? kContinued.size() : 0));
  }
  if (has_room) return as_is;
  std::string comment;
  if (const auto begin = joined.find(kComment); begin != std::string::npos) {
    comment = wrapped(joined.substr(begin + kComment.size()),
                      {.width = width, .head = "  # ", .indent = kComment.size()});
    joined.resize(begin);
  }
  return comment + broken_command(joined, width);
}

}  // namespace

std::string examples_text(std::string_view examples, std::size_t width) {
  std::string out;
  std::string paragraph;
  std::vector<std::string> command;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) out += wrapped(paragraph, {.width = width});
    paragraph.clear();
  };
  auto lines = split(std::string(examples), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const auto& line : lines) {
    if (line.starts_with(kExampleIndent)) {
      end_paragraph();
      command.emplace_back(line);
      if (line.ends_with(kContinued)) continue;
      out += command_text(command, width);
      command.clear();
    } else if (line.empty()) {
      end_paragraph();
      out += '\n';
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    }
  }
  end_paragraph();
  return out;
}

}  // namespace muster
