// Each filter charges the budget for the text that it makes, before or right after making it;
// `replace` does so by its upper bound, because a small template could otherwise make gigabytes.
// The table is sorted by name for its reader and searched from the front, since it is short. `safe`
// does nothing: chat templates write plain text.

#include "chat/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "chat/list_filters.h"
#include "chat/text_work.h"

// Filters on texts, numbers and single values; those on lists are in list_filters.cpp. Like Jinja's
// they take a value of another kind for its text where that makes sense.

namespace muster {
namespace {

using Value = Result<ChatValue>;

/// A made text, its bytes counted.
Value made(std::string text, ChatBudget& budget) {
  MUSTER_TRY(budget.take(text.size()));
  return ChatValue(std::move(text));
}

std::optional<std::string_view> text_argument(const ChatArguments& arguments, std::size_t place,
                                              std::string_view name) {
  const auto* found = arguments.find(place, name);
  const auto* text = found == nullptr ? nullptr : found->as_text();
  return text == nullptr ? std::nullopt : std::optional<std::string_view>(*text);
}

std::optional<std::int64_t> integer_argument(const ChatArguments& arguments, std::size_t place,
                                             std::string_view name) {
  const auto* found = arguments.find(place, name);
  const auto* integer = found == nullptr ? nullptr : found->as_integer();
  return integer == nullptr ? std::nullopt : std::optional(*integer);
}

bool flag_argument(const ChatArguments& arguments, std::size_t place, std::string_view name,
                   bool fallback) {
  const auto* found = arguments.find(place, name);
  return found == nullptr ? fallback : is_true(*found);
}

Value trim(const ChatValue& value, const ChatArguments& arguments, ChatBudget& budget) {
  const auto text = MUSTER_TRY(paid_text_of(value, budget));
  const auto characters = text_argument(arguments, 0, "chars");
  if (characters) MUSTER_TRY(budget.take(characters->size() * sizeof(char32_t)));
  return made(std::string(stripped_text(text, StripEnds::Both, characters)), budget);
}

/// A text with its letters in another case.
Value in_case(std::string (*change)(std::string_view), const ChatValue& value, ChatBudget& budget) {
  const auto text = MUSTER_TRY(paid_text_of(value, budget));
  MUSTER_TRY(budget.take(text.size() * kCaseCost));
  return made(change(text), budget);
}

Value lower(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  return in_case(lower_text, value, budget);
}
Value upper(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  return in_case(upper_text, value, budget);
}
Value title(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  return in_case(title_text, value, budget);
}
Value capitalize(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  return in_case(capitalized_text, value, budget);
}
Value to_text(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  return made(MUSTER_TRY(paid_text_of(value, budget)), budget);
}
// Nothing is escaped in the first place.
Value safe(const ChatValue& value, const ChatArguments&, ChatBudget&) { return value; }

Value replace(const ChatValue& value, const ChatArguments& arguments, ChatBudget& budget) {
  const auto from = text_argument(arguments, 0, "old");
  const auto to = text_argument(arguments, 1, "new");
  if (!from || !to) return invalid_error("replace takes two texts");
  const auto text = MUSTER_TRY(paid_text_of(value, budget));
  const auto times = from->empty() ? text.size() + 1 : text.size() / from->size();
  MUSTER_TRY(budget.take(text.size() + times * to->size()));
  return ChatValue(replaced_text(text, *from, *to, integer_argument(arguments, 2, "count")));
}

/// Source: Jinja 3.1, do_indent: the first line and blank ones stay unless asked for, every end of
/// a line becomes a line feed, and one is put behind the text first, as splitlines needs it.
Value indent(const ChatValue& value, const ChatArguments& arguments, ChatBudget& budget) {
  const auto width = integer_argument(arguments, 0, "width").value_or(4);
  if (width < 0 || width > 1000) return invalid_error("indent takes a width of 0 to 1000");
  const auto mark = text_argument(arguments, 0, "width");
  const auto space = mark ? std::string(*mark) : std::string(static_cast<std::size_t>(width), ' ');
  const bool takes_first = flag_argument(arguments, 1, "first", false);
  const bool takes_blank = flag_argument(arguments, 2, "blank", false);
  auto text = MUSTER_TRY(paid_text_of(value, budget));
  text += '\n';
  std::string out;
  for (std::string_view left = text; !left.empty();) {
    const bool is_first = left.size() == text.size();
    const auto line = first_line(left);
    const bool is_indented = is_first ? takes_first : takes_blank || !line.text.empty();
    MUSTER_TRY(budget.take(line.size + space.size()));
    if (!is_first) out += '\n';
    if (is_indented) out += space;
    out += line.text;
    left.remove_prefix(line.size);
  }
  return ChatValue(std::move(out));
}

// An undefined value always takes the default; a false one only where the second argument asks for
// it.
Value fallback(const ChatValue& value, const ChatArguments& arguments, ChatBudget&) {
  const bool counts_false = flag_argument(arguments, 1, "boolean", false);
  if (!value.is_undefined() && !(counts_false && !is_true(value))) return value;
  const auto* given = arguments.find(0, "default_value");
  return given == nullptr ? ChatValue("") : *given;
}

// Characters and not bytes, which takes a walk over the text; hence the cost.
Value length(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  std::size_t count = 0;
  if (const auto* text = value.as_text()) {
    MUSTER_TRY(budget.spend(text->size()));
    count = character_count(*text);
  } else if (const auto* list = value.as_list()) {
    count = list->size();
  } else if (const auto* map = value.as_map()) {
    count = map->size();
  } else if (!value.is_undefined()) {
    return invalid_error(fmt::format("the length of {}", kind_name(value)));
  }
  return ChatValue(static_cast<std::int64_t>(count));
}

/// What tojson indents each level by, as json.dumps takes it: a text, or so many spaces. A negative
/// count breaks lines without any, as 0 does.
Result<std::optional<std::string>> json_indent(const ChatValue* given, ChatBudget& budget) {
  if (given == nullptr || given->is_none()) return std::optional<std::string>();
  if (const auto* text = given->as_text()) return std::optional(*text);
  const auto* flag = given->as_flag();
  const auto* integer = given->as_integer();
  if (flag == nullptr && integer == nullptr) {
    return invalid_error(fmt::format("tojson takes an indent, not {}", kind_name(*given)));
  }
  const auto width = flag != nullptr ? std::int64_t{*flag ? 1 : 0} : *integer;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(width, 0));
  MUSTER_TRY(budget.take(size));
  return std::optional(std::string(size, ' '));
}

// A filter argument named indent changes the separator behind items as Python does: no space before
// a line break.
Value to_json(const ChatValue& value, const ChatArguments& arguments, ChatBudget& budget) {
  JsonStyle style;
  style.ensures_ascii = flag_argument(arguments, 0, "ensure_ascii", false);
  style.indent = MUSTER_TRY(json_indent(arguments.find(1, "indent"), budget));
  if (style.indent) style.item_separator = ",";
  if (const auto* separators = arguments.find(2, "separators")) {
    const auto* list = separators->as_list();
    if (list != nullptr && list->size() == 2) {
      style.item_separator = MUSTER_TRY(paid_text_of((*list)[0], budget));
      style.key_separator = MUSTER_TRY(paid_text_of((*list)[1], budget));
    } else if (!separators->is_none()) {
      return invalid_error("tojson takes two separators");
    }
  }
  style.sorts_keys = flag_argument(arguments, 3, "sort_keys", false);
  return ChatValue(MUSTER_TRY(json_text(value, style, budget)));
}

/// The number at the whole of a text, as int() and float() read it.
std::optional<double> number_in(const std::string& text) {
  const auto stripped = std::string(stripped_text(text, StripEnds::Both, std::nullopt));
  if (stripped.empty()) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(stripped.c_str(), &end);
  if (*end != '\0' || stripped.find_first_of("xXpP") != std::string::npos) return std::nullopt;
  return number;
}

Error too_large() { return invalid_error("an integer beyond 64 bits"); }

/// The integer at the whole of a text, as int() reads it: a sign, and digits with single
/// underscores between them. nullopt: it is none.
Result<std::optional<std::int64_t>> integer_in(const std::string& text) {
  auto left = stripped_text(text, StripEnds::Both, std::nullopt);
  std::string digits;
  if (left.starts_with('-')) digits = "-";
  if (left.starts_with('-') || left.starts_with('+')) left.remove_prefix(1);
  bool was_digit = false;
  for (const char c : left) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && !(c == '_' && was_digit)) return std::optional<std::int64_t>();
    was_digit = is_digit;
    if (is_digit) digits += c;
  }
  if (!was_digit) return std::optional<std::int64_t>();
  std::int64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc()) return too_large();
  return std::optional(number);
}

// What is no number gives the default and no error, as in Jinja. An integer is not read through a
// double, which has 53 bits.
Value to_integer(const ChatValue& value, const ChatArguments& arguments, ChatBudget&) {
  if (value.is_undefined()) return invalid_error(value.as_undefined()->name + " is undefined");
  if (const auto* flag = value.as_flag()) return ChatValue(std::int64_t{*flag ? 1 : 0});
  if (value.as_integer() != nullptr) return value;
  std::optional<double> number;
  if (const auto* real = value.as_float()) number = *real;
  if (const auto* text = value.as_text()) {
    if (const auto integer = MUSTER_TRY(integer_in(*text))) return ChatValue(*integer);
    number = number_in(*text);
    if (number && std::isinf(*number)) number.reset();
  }
  if (!number || std::isnan(*number)) {
    const auto* absent = arguments.find(0, "default");
    return absent == nullptr ? ChatValue(std::int64_t{0}) : *absent;
  }
  if (!(std::abs(*number) < 0x1p63)) return too_large();
  return ChatValue(static_cast<std::int64_t>(*number));
}

Value to_float(const ChatValue& value, const ChatArguments& arguments, ChatBudget&) {
  if (value.is_undefined()) return invalid_error(value.as_undefined()->name + " is undefined");
  if (const auto* integer = value.as_integer()) return ChatValue(static_cast<double>(*integer));
  if (const auto* flag = value.as_flag()) return ChatValue(*flag ? 1.0 : 0.0);
  if (value.as_float() != nullptr) return value;
  if (const auto* text = value.as_text()) {
    if (const auto number = number_in(*text)) return ChatValue(*number);
  }
  const auto* given = arguments.find(0, "default");
  return given == nullptr ? ChatValue(0.0) : *given;
}

// The smallest integer has no positive counterpart and is refused.
Value absolute(const ChatValue& value, const ChatArguments&, ChatBudget&) {
  if (const auto* flag = value.as_flag()) return ChatValue(std::int64_t{*flag ? 1 : 0});
  const auto* integer = value.as_integer();
  if (integer != nullptr && *integer != INT64_MIN)
    return ChatValue(std::int64_t{std::abs(*integer)});
  if (const auto* real = value.as_float()) return ChatValue(std::abs(*real));
  return invalid_error(fmt::format("abs of {}", kind_name(value)));
}

/// To the decimal number of so many places that is nearest to the very value, of two the even one:
/// 2.675 is 2.67499... and so 2.67. Source: CPython 3.11, double_round of floatobject.c.
double rounded(double number, int precision) {
  if (!std::isfinite(number)) return number;
  std::array<char, 400> buffer{};  // 309 digits before the point at most, and 15 behind it
  const auto* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                  std::chars_format::fixed, precision)
                        .ptr;
  double value = 0;
  std::from_chars(buffer.data(), end, value);
  return value;
}

/// Source: Jinja 3.1, do_round, method "common", which is Python's round(): of an integer itself.
Value round(const ChatValue& value, const ChatArguments& arguments, ChatBudget&) {
  const auto precision = integer_argument(arguments, 0, "precision").value_or(0);
  if (text_argument(arguments, 1, "method").value_or("common") != "common" || precision < 0 ||
      precision > 15) {
    return Error{ErrorKind::Unsupported, "round by another method than common is not known"};
  }
  if (value.as_integer() != nullptr) return value;
  if (const auto* flag = value.as_flag()) return ChatValue(std::int64_t{*flag ? 1 : 0});
  if (const auto* real = value.as_float()) {
    return ChatValue(rounded(*real, static_cast<int>(precision)));
  }
  return invalid_error(fmt::format("round of {}", kind_name(value)));
}

using Filter = Value (*)(const ChatValue&, const ChatArguments&, ChatBudget&);
struct Row {
  std::string_view name;
  Filter apply;
  std::string_view parameters;  // that are read, in their order; "*": it looks at them itself
};
constexpr auto kFilters = std::to_array<Row>({
    {"abs", absolute, ""},
    {"capitalize", capitalize, ""},
    {"count", length, ""},
    {"d", fallback, "default_value boolean"},
    {"default", fallback, "default_value boolean"},
    {"dictsort", sorted_items, "case_sensitive by reverse"},
    {"first", first_item, ""},
    {"float", to_float, "default"},
    {"indent", indent, "width first blank"},
    {"int", to_integer, "default"},
    {"items", iterated_items, ""},
    {"join", joined_items, "d attribute"},
    {"last", last_item, ""},
    {"length", length, ""},
    {"list", as_list_value, ""},
    {"lower", lower, ""},
    {"map", mapped_items, "*"},
    {"max", largest_item, "case_sensitive attribute"},
    {"min", smallest_item, "case_sensitive attribute"},
    {"reject", rejected_items, "*"},
    {"rejectattr", rejected_by_attribute, "*"},
    {"replace", replace, "old new count"},
    {"reverse", reversed_items, ""},
    {"round", round, "precision method"},
    {"safe", safe, ""},
    {"select", selected_items, "*"},
    {"selectattr", selected_by_attribute, "*"},
    {"sort", ordered_items, "reverse case_sensitive attribute"},
    {"string", to_text, ""},
    {"sum", sum_of_items, "attribute start"},
    {"title", title, ""},
    {"tojson", to_json, "ensure_ascii indent separators sort_keys"},
    {"trim", trim, "chars"},
    {"unique", unique_items, "case_sensitive attribute"},
    {"upper", upper, ""},
});

const Row* find_row(std::string_view name) {
  const auto* row = std::find_if(kFilters.begin(), kFilters.end(),
                                 [&](const Row& each) { return each.name == name; });
  return row == kFilters.end() ? nullptr : row;
}

bool is_among(std::string_view name, std::string_view names) {
  const auto parts = split_text(names, " ", std::nullopt);
  return std::find(parts.begin(), parts.end(), name) != parts.end();
}

std::size_t count_of(std::string_view names) {
  const auto blanks = std::count(names.begin(), names.end(), ' ');
  return names.empty() ? 0 : static_cast<std::size_t>(blanks) + 1;
}

}  // namespace

Status check_arguments(std::string_view callee, const ChatArguments& arguments,
                       std::size_t place_count, std::string_view names) {
  const auto unknown = [&](std::string_view argument) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("an argument of {} that is not known: {}", callee, argument)};
  };
  if (arguments.values.size() > place_count) return unknown(std::to_string(place_count + 1));
  for (const auto& [name, value] : arguments.named) {
    if (!is_among(name, names)) return unknown(name.substr(0, 40));
  }
  return Done{};
}

Result<std::string> paid_text_of(const ChatValue& value, ChatBudget& budget) {
  if (value.as_list() != nullptr || value.as_map() != nullptr) {
    // A byte may become an escape of four, "\x01".
    MUSTER_TRY(budget.take(value.measure().weight * 4));
  }
  // Python writes where it is in memory.
  if (value.as_function() != nullptr) {
    return Error{ErrorKind::Unsupported, "the text of a function is not known"};
  }
  if (value.is_iterator()) {
    return Error{ErrorKind::Unsupported, "the text of an iterator is not known; that of a list is"};
  }
  return text_of(value);
}

// Two values are compared until they differ, so no longer than the smaller one is.
Status pay_for_comparisons(const ChatValue::List& items, const ChatValue& value,
                           ChatBudget& budget) {
  const auto most = value.measure().weight;
  for (const auto& item : items) {
    MUSTER_TRY(budget.spend(std::min(item.measure().weight, most)));
  }
  return Done{};
}

bool is_filter(std::string_view name) { return find_row(name) != nullptr; }

std::vector<std::string> filter_names() {
  std::vector<std::string> names;
  for (const auto& row : kFilters) names.emplace_back(row.name);
  return names;
}

Result<ChatValue> apply_filter(std::string_view name, const ChatValue& value,
                               const ChatArguments& arguments, ChatBudget& budget) {
  const auto* row = find_row(name);
  if (row == nullptr) {
    return Error{ErrorKind::Unsupported, fmt::format("a filter that is not known: {}", name)};
  }
  // `map` applies a filter itself, which may be `map`.
  const ChatBudget::Level level(budget);
  MUSTER_TRY(budget.check_depth());
  const auto* text = value.as_text();
  MUSTER_TRY(budget.spend(text == nullptr ? 0 : text->size()));
  if (row->parameters != "*") {
    MUSTER_TRY(check_arguments(name, arguments, count_of(row->parameters), row->parameters));
  }
  return row->apply(value, arguments, budget);
}

}  // namespace muster
