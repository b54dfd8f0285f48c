// A reader of Accept that answers one question and builds nothing. Only the full name of a type
// counts, so a wildcard never selects it and a client that sends none of its own gets the default
// form. Weights are not compared with each other: a weight of 0 rules the entry out, any other
// admits it.

#include "server/accept_header.h"

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char left, char right) { return lower(left) == lower(right); });
}

// "a;q=0.5" -> "a" and ";q=0.5", without blanks around.
std::string_view cut_at(std::string_view& text, char mark) {
  const auto end = std::min(text.find(mark), text.size());
  const auto first = trim(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return first;
}

// "q=0", "q=0.", "q=0.000".
bool is_weight_zero(std::string_view parameter) {
  const auto name = cut_at(parameter, '=');
  return is_same_word(name, "q") && !parameter.empty() &&
         trim(parameter).find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool names_type(std::string_view accept, std::string_view type) {
  while (!accept.empty()) {
    auto entry = cut_at(accept, ',');
    if (!is_same_word(cut_at(entry, ';'), type)) continue;
    bool is_wanted = true;
    while (!entry.empty()) is_wanted = is_wanted && !is_weight_zero(cut_at(entry, ';'));
    if (is_wanted) return true;
  }
  return false;
}

}  // namespace muster
