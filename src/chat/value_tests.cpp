// The tests of `is` in templates, each a predicate on a value and perhaps one argument. Names are
// known from a table alone, so the parser can refuse an unknown test before anything runs. A test
// of a kind answers for every value, undefined ones included; only comparisons and tests of
// integers can fail. Source: Jinja 3.1, tests.py.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "chat/filters.h"
#include "chat/text_work.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, 36> kTests{
    "!=",      "<",        "<=",       "==",          ">",           ">=",
    "boolean", "callable", "defined",  "divisibleby", "eq",          "equalto",
    "even",    "false",    "float",    "ge",          "greaterthan", "gt",
    "in",      "integer",  "iterable", "le",          "lessthan",    "lower",
    "lt",      "mapping",  "ne",       "none",        "number",      "odd",
    "sameas",  "sequence", "string",   "true",        "undefined",   "upper"};

/// The comparison that a test's name stands for; empty for any other.
std::string_view comparison_of(std::string_view name) {
  if (name == "eq" || name == "equalto" || name == "==") return "==";
  if (name == "ne" || name == "!=") return "!=";
  if (name == "lt" || name == "lessthan" || name == "<") return "<";
  if (name == "le" || name == "<=") return "<=";
  if (name == "gt" || name == "greaterthan" || name == ">") return ">";
  if (name == "ge" || name == ">=") return ">=";
  return name == "in" ? name : std::string_view();
}

Result<bool> is_multiple(const ChatValue& value, std::int64_t of, std::int64_t rest) {
  const auto* integer = value.as_integer();
  if (integer == nullptr || of == 0) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a test of an integer on {}", kind_name(value))};
  }
  return ((*integer % of) + of) % of == rest;
}

bool is_number(const ChatValue& value) {
  return value.as_integer() != nullptr || value.as_float() != nullptr || value.as_flag() != nullptr;
}

bool is_same(const ChatValue& a, const ChatValue& b) {
  return kind_name(a) == kind_name(b) && are_equal(a, b);
}

bool has_kind(std::string_view name, const ChatValue& value) {
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "string") return value.as_text() != nullptr;
  if (name == "number") return is_number(value);
  if (name == "integer") return value.as_integer() != nullptr;
  if (name == "float") return value.as_float() != nullptr;
  if (name == "boolean") return value.as_flag() != nullptr;
  if (name == "true") return value.as_flag() != nullptr && *value.as_flag();
  if (name == "false") return value.as_flag() != nullptr && !*value.as_flag();
  if (name == "mapping") return value.as_map() != nullptr;
  if (name == "callable") return value.as_function() != nullptr;
  const bool is_list = value.as_list() != nullptr || value.as_map() != nullptr ||
                       value.as_text() != nullptr || value.is_undefined();
  if (name == "iterable") return is_list || value.is_iterator();
  if (name == "sequence") return is_list;
  // A text with letters, all of the case.
  const auto text = text_of(value);
  if (name == "lower") return text == lower_text(text) && text != upper_text(text);
  return text == upper_text(text) && text != lower_text(text);
}

}  // namespace

bool is_test(std::string_view name) {
  return std::find(kTests.begin(), kTests.end(), name) != kTests.end();
}

std::vector<std::string> test_names() { return {kTests.begin(), kTests.end()}; }

Result<bool> apply_test(std::string_view name, const ChatValue& value,
                        const ChatArguments& arguments, ChatBudget& budget) {
  const auto comparison = comparison_of(name);
  const bool takes_one = !comparison.empty() || name == "divisibleby" || name == "sameas";
  if (arguments.values.size() != (takes_one ? 1 : 0) || !arguments.named.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the test {} takes {} argument", name, takes_one ? "one" : "no")};
  }
  if (!comparison.empty()) {
    return compare_values(comparison, value, arguments.values[0], budget);
  }
  if (name == "odd") return is_multiple(value, 2, 1);
  if (name == "even") return is_multiple(value, 2, 0);
  if (name == "sameas") {
    const auto& other = arguments.values[0];
    MUSTER_TRY(budget.spend(std::min(value.measure().weight, other.measure().weight)));
    return is_same(value, other);
  }
  if (name == "divisibleby") {
    const auto* divisor = arguments.values[0].as_integer();
    return is_multiple(value, divisor == nullptr || *divisor == INT64_MIN ? 0 : std::abs(*divisor),
                       0);
  }
  if (name == "lower" || name == "upper")
    MUSTER_TRY(budget.take(value.measure().weight * kCaseCost));
  return has_kind(name, value);
}

}  // namespace muster
