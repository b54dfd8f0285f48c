#include "cli/shell_words.h"

#include <string_view>

namespace muster {

std::string join_shell_words(std::span<const std::string> words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  std::string line;
  for (const auto& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      if (c == '\'') {
        line += "'\\''";  // ends the quotes, a quoted quote, begins them again
      } else {
        line += c;
      }
    }
    line += '\'';
  }
  return line;
}

}  // namespace muster
