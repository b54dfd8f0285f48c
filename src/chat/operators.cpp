// Operators on values, with Python's meaning where C++ differs: division and remainder round down,
// integers do not wrap, and a comparison of kinds that have no order is an error. Integers are
// tried before floats, so exact results stay exact. Every text or list that an operator makes is
// charged. An undefined value is reported by its name, since a missing field is the usual fault of
// a conversation.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "chat/filters.h"
#include "chat/text_work.h"

// What Python does with two values. A flag counts as 0 or 1; integers stay integers but for "/",
// and one that would pass 64 bits is an error, as Python's would grow.

namespace muster {
namespace {

using Value = Result<ChatValue>;

constexpr std::int64_t kPowerMax = 1024;

std::optional<std::int64_t> integer_of(const ChatValue& value) {
  if (const auto* flag = value.as_flag()) return *flag ? 1 : 0;
  if (const auto* integer = value.as_integer()) return *integer;
  return std::nullopt;
}

std::optional<double> number_of(const ChatValue& value) {
  if (const auto integer = integer_of(value)) return static_cast<double>(*integer);
  if (const auto* real = value.as_float()) return *real;
  return std::nullopt;
}

// An undefined operand is named first: it explains more than the kinds do.
Error wrong_kinds(std::string_view name, const ChatValue& left, const ChatValue& right) {
  for (const auto* each : {&left, &right}) {
    if (each->is_undefined()) return invalid_error(each->as_undefined()->name + " is undefined");
  }
  return invalid_error(
      fmt::format("{} between {} and {}", name, kind_name(left), kind_name(right)));
}

/// Source: CPython 3.11, float_pow: what has no real result, or none that fits, is refused.
Value float_power(double base, double exponent) {
  if (base == 0 && exponent < 0) return invalid_error("a division by zero");
  const double result = std::pow(base, exponent);
  if (std::isnan(result) && !std::isnan(base) && !std::isnan(exponent)) {
    return Error{ErrorKind::Unsupported, "a power that is a complex number is not known"};
  }
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    return invalid_error("a power beyond the floats");
  }
  return ChatValue(result);
}

// A product in a loop finds the overflow exactly; the bound on the exponent keeps powers of 0, 1
// and -1 short.
Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return float_power(static_cast<double>(base), static_cast<double>(exponent));
  if (exponent > kPowerMax) return invalid_error("an exponent above 1024");
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result))
      return invalid_error("an integer beyond 64 bits");
  }
  return ChatValue(result);
}

Value integer_result(std::string_view name, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool is_too_large = false;
  if (name == "+") {
    is_too_large = __builtin_add_overflow(a, b, &result);
  } else if (name == "-") {
    is_too_large = __builtin_sub_overflow(a, b, &result);
  } else if (name == "*") {
    is_too_large = __builtin_mul_overflow(a, b, &result);
  } else if (name == "**") {
    return integer_power(a, b);
  } else {
    if (b == 0) return invalid_error("a division by zero");
    if (name == "/") return ChatValue(static_cast<double>(a) / static_cast<double>(b));
    is_too_large = a == INT64_MIN && b == -1;
    if (!is_too_large) {
      // Python rounds down; the remainder has the sign of the divisor.
      const auto rest = a % b;
      const bool is_between = rest != 0 && (rest < 0) != (b < 0);
      result = name == "//" ? a / b - (is_between ? 1 : 0) : rest + (is_between ? b : 0);
    }
  }
  if (is_too_large) return invalid_error("an integer beyond 64 bits");
  return ChatValue(result);
}

struct Division {
  double whole;
  double rest;
};

/// Of a number by one that is not 0. The rest is exact and has the divisor's sign, and the whole
/// number belongs to it: 1 // 0.1 is 9. Source: CPython 3.11, _float_div_mod.
Division divided(double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(0.0, b);
  } else if ((b < 0) != (rest < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), rest};
  const double whole = std::floor(quotient);
  return {quotient - whole > 0.5 ? whole + 1 : whole, rest};
}

// A division by zero is an error, as in Python, and not an infinity.
Value float_result(std::string_view name, double a, double b) {
  if (name == "+") return ChatValue(a + b);
  if (name == "-") return ChatValue(a - b);
  if (name == "*") return ChatValue(a * b);
  if (name == "**") return float_power(a, b);
  if (b == 0) return invalid_error("a division by zero");
  if (name == "/") return ChatValue(a / b);
  const auto division = divided(a, b);
  return ChatValue(name == "//" ? division.whole : division.rest);
}

// A count below 1 gives an empty text, as in Python. The size is checked before it is multiplied.
Value repeated(const std::string& text, std::int64_t count, ChatBudget& budget) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (text.empty() || times == 0) return ChatValue("");
  if (times > SIZE_MAX / text.size()) return invalid_error("a text repeated too often");
  MUSTER_TRY(budget.take(text.size() * times));
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return ChatValue(std::move(out));
}

Value joined(const std::string& left, const std::string& right, ChatBudget& budget) {
  MUSTER_TRY(budget.take(left.size() + right.size()));
  return ChatValue(left + right);
}

// A text contains texts, a list values, a map keys; what is undefined contains nothing.
Result<bool> contains(const ChatValue& holder, const ChatValue& item, ChatBudget& budget) {
  if (const auto* text = holder.as_text()) {
    const auto* part = item.as_text();
    if (part == nullptr) return wrong_kinds("in", item, holder);
    MUSTER_TRY(budget.spend(text->size()));
    return find_text(*text, *part, 0) != std::string::npos;
  }
  if (const auto* list = holder.as_list()) {
    MUSTER_TRY(pay_for_comparisons(*list, item, budget));
    return std::any_of(list->begin(), list->end(),
                       [&](const ChatValue& each) { return are_equal(each, item); });
  }
  if (const auto* map = holder.as_map()) {
    if (item.as_text() == nullptr) return false;
    MUSTER_TRY(pay_for_look_up(*map, *item.as_text(), budget));
    return holder.find(*item.as_text()) != nullptr;
  }
  if (holder.is_iterator()) {
    const auto items = MUSTER_TRY(elements_of(holder, budget));
    MUSTER_TRY(pay_for_comparisons(items, item, budget));
    const bool is_found = std::any_of(items.begin(), items.end(),
                                      [&](const ChatValue& each) { return are_equal(each, item); });
    if (is_found) holder.leave_walk();
    return is_found;
  }
  if (holder.is_undefined()) return false;
  return wrong_kinds("in", item, holder);
}

}  // namespace

// Names of another size are told apart by it; the others may differ in their last byte alone.
Status pay_for_look_up(const ChatValue::Map& map, std::string_view key, ChatBudget& budget) {
  std::size_t size = map.size();
  for (const auto& [name, value] : map) size += name.size() == key.size() ? key.size() : 0;
  return budget.spend(size);
}

Result<ChatValue> apply_operator(std::string_view name, const ChatValue& left,
                                 const ChatValue& right, ChatBudget& budget) {
  if (name == "~") {
    const auto before = MUSTER_TRY(paid_text_of(left, budget));
    return joined(before, MUSTER_TRY(paid_text_of(right, budget)), budget);
  }
  const auto* text = left.as_text();
  if (name == "+" && text != nullptr && right.as_text() != nullptr) {
    return joined(*text, *right.as_text(), budget);
  }
  if (name == "+" && left.as_list() != nullptr && right.as_list() != nullptr) {
    if (left.is_tuple() != right.is_tuple()) return wrong_kinds(name, left, right);
    auto list = *left.as_list();
    MUSTER_TRY(budget.take((list.size() + right.as_list()->size()) * sizeof(ChatValue)));
    list.insert(list.end(), right.as_list()->begin(), right.as_list()->end());
    return left.is_tuple() ? ChatValue::tuple(std::move(list)) : ChatValue(std::move(list));
  }
  const auto a = integer_of(left);
  const auto b = integer_of(right);
  if (name == "*" && text != nullptr && b) return repeated(*text, *b, budget);
  if (name == "*" && a && right.as_text() != nullptr) return repeated(*right.as_text(), *a, budget);
  if (name == "%" && text != nullptr) {
    return Error{ErrorKind::Unsupported, "a text formatted by % is not known"};
  }
  if (a && b) return integer_result(name, *a, *b);
  const auto x = number_of(left);
  const auto y = number_of(right);
  if (x && y) return float_result(name, *x, *y);
  return wrong_kinds(name, left, right);
}

Result<bool> compare_values(std::string_view name, const ChatValue& left, const ChatValue& right,
                            ChatBudget& budget) {
  if (name == "in") return contains(right, left, budget);
  if (name == "not in") return !MUSTER_TRY(contains(right, left, budget));
  MUSTER_TRY(budget.spend(std::min(left.measure().weight, right.measure().weight)));
  if (name == "==") return are_equal(left, right);
  if (name == "!=") return !are_equal(left, right);
  int order = 0;
  if (left.as_text() != nullptr && right.as_text() != nullptr) {
    // The order of UTF-8's bytes is that of the characters.
    order = left.as_text()->compare(*right.as_text());
  } else if (left.as_integer() != nullptr && right.as_integer() != nullptr) {
    // As doubles two that differ above 2^53 could be equal.
    const auto x = *left.as_integer();
    const auto y = *right.as_integer();
    order = x < y ? -1 : x > y ? 1 : 0;
  } else {
    const auto x = number_of(left);
    const auto y = number_of(right);
    if (!x || !y) return wrong_kinds(name, left, right);
    if (std::isnan(*x) || std::isnan(*y)) return false;
    order = *x < *y ? -1 : *x > *y ? 1 : 0;
  }
  if (name == "<") return order < 0;
  if (name == "<=") return order <= 0;
  return name == ">" ? order > 0 : order >= 0;
}

// A copy, since a filter may change it; the values in it are shared.
Result<ChatValue::List> elements_of(const ChatValue& value, ChatBudget& budget) {
  ChatValue::List items;
  if (const auto* list = value.as_list()) {
    MUSTER_TRY(budget.take(list->size() * sizeof(ChatValue)));
    return *list;
  }
  if (const auto* map = value.as_map()) {
    MUSTER_TRY(budget.take(map->size() * sizeof(ChatValue)));
    for (const auto& [key, item] : *map) items.emplace_back(key);
    return items;
  }
  if (const auto* text = value.as_text()) {
    MUSTER_TRY(budget.take(text->size() * sizeof(ChatValue)));
    const auto places = character_places(*text);
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
      items.emplace_back(text->substr(places[i], places[i + 1] - places[i]));
    }
    return items;
  }
  if (value.is_iterator()) {
    items = MUSTER_TRY(value.walk());
    MUSTER_TRY(budget.take(items.size() * sizeof(ChatValue)));
    return items;
  }
  if (value.is_undefined()) return items;
  return invalid_error(fmt::format("{} cannot be gone over", kind_name(value)));
}

// A field that is missing is undefined and no error until it is used; only a field of something
// undefined is an error at once. Negative places count from the end.
Result<ChatValue> element_of(const ChatValue& value, const ChatValue& index, ChatBudget& budget) {
  if (value.is_undefined()) return invalid_error(value.as_undefined()->name + " is undefined");
  // Jinja looks for an attribute where there is no element: m['items'] is a method.
  const auto absent = [&]() -> Value {
    const auto* key = index.as_text();
    if (key != nullptr && has_method(value, *key)) return uncalled_method(*key);
    const auto name =
        key != nullptr ? key->substr(0, 60) : MUSTER_TRY(paid_text_of(index, budget)).substr(0, 60);
    return ChatValue(ChatValue::Undefined{name});
  };
  const auto* name = index.as_text();
  if (const auto* map = value.as_map()) {
    if (name == nullptr) return absent();
    MUSTER_TRY(pay_for_look_up(*map, *name, budget));
    const auto* found = value.find(*name);
    return found == nullptr ? absent() : Value(*found);
  }
  if (const auto* fields = value.as_namespace()) {
    if (name == nullptr) return absent();
    MUSTER_TRY(pay_for_look_up((*fields)->fields, *name, budget));
    for (const auto& [key, field] : (*fields)->fields) {
      if (key == *name) return field;
    }
    return absent();
  }
  const auto at = integer_of(index);
  if (!at) return absent();
  if (const auto* list = value.as_list()) {
    const auto size = static_cast<std::int64_t>(list->size());
    const auto place = *at < 0 ? *at + size : *at;
    if (place < 0 || place >= size) return absent();
    return (*list)[static_cast<std::size_t>(place)];
  }
  if (const auto* text = value.as_text()) {
    MUSTER_TRY(budget.spend(text->size()));
    const auto character = character_at(*text, *at);
    return character ? Value(ChatValue(*character)) : absent();
  }
  return absent();
}

}  // namespace muster
