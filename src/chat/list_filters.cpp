// Filters that take or make lists. They behave as Jinja's do: texts are compared without their case
// unless asked otherwise, and a sort keeps the order of equal items. Values are shared, so a new
// list costs one value for each item whatever the items hold. A comparison that fails inside a sort
// cannot leave it, so it is remembered and reported afterwards. Source: Jinja 3.1, filters.py.

#include "chat/list_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "chat/filters.h"
#include "chat/text_work.h"

namespace muster {
namespace {

using Value = Result<ChatValue>;

/// A part of an attribute's name: digits are a place in a list.
// More than 18 digits are no place that a list has.
ChatValue index_of(const std::string& part) {
  const bool is_place = !part.empty() && part.size() <= 18 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
  return is_place ? ChatValue(std::int64_t{std::stoll(part)}) : ChatValue(part);
}

/// "function.name" of an item, or its first level; the item itself without a name. absent: stands
/// for what is undefined at any level; nullptr: nothing does.
// Dots lead into nested values; an integer is a place in a list and is taken whole.
// Source: Jinja 3.1, filters.py, make_attrgetter.
Value attribute_of(const ChatValue& item, const ChatValue* name, ChatBudget& budget,
                   const ChatValue* absent = nullptr) {
  if (name == nullptr || name->is_none()) return item;
  std::vector<ChatValue> indexes{*name};
  if (name->as_integer() == nullptr) {
    const auto path = MUSTER_TRY(paid_text_of(*name, budget));
    MUSTER_TRY(budget.take(path.size() * (sizeof(std::string) + sizeof(ChatValue))));
    indexes.clear();
    for (const auto& part : split_text(path, ".", std::nullopt)) indexes.push_back(index_of(part));
  }
  ChatValue value = item;
  for (const auto& index : indexes) {
    value = MUSTER_TRY(element_of(value, index, budget));
    if (value.is_undefined() && absent != nullptr) value = *absent;
  }
  return value;
}

/// What two items are ordered or told apart by: texts without their case, unless it counts.
Value key_of(const ChatValue& item, const ChatValue* attribute, bool counts_case,
             ChatBudget& budget) {
  auto value = MUSTER_TRY(attribute_of(item, attribute, budget));
  const auto* text = value.as_text();
  if (counts_case || text == nullptr) return value;
  MUSTER_TRY(budget.take(text->size() * (1 + kCaseCost)));
  return ChatValue(lower_text(*text));
}

/// The places of `keys` in ascending order; equal ones stay in theirs.
Result<std::vector<std::size_t>> order_of(const ChatValue::List& keys, bool is_reversed,
                                          ChatBudget& budget) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  MUSTER_TRY(budget.spend(keys.size() * 64 * 20));  // comparisons, for up to a million items
  std::optional<Error> fault;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (fault) return false;
    const auto is_less =
        compare_values("<", keys[is_reversed ? b : a], keys[is_reversed ? a : b], budget);
    if (!is_less) fault = is_less.error();
    return is_less && *is_less;
  });
  if (fault) return *fault;
  return order;
}

Value taken(ChatValue::List list, ChatBudget& budget) {
  MUSTER_TRY(budget.take(list.size() * sizeof(ChatValue)));
  return ChatValue(std::move(list));
}

Value iterated(ChatValue::List list, ChatBudget& budget) {
  MUSTER_TRY(budget.take(list.size() * sizeof(ChatValue)));
  return ChatValue::iterator(std::move(list));
}

/// What map and select go over: of a value that is not true, such as None, nothing.
/// Source: Jinja 3.1, filters.py, sync_do_map and select_or_reject.
Result<ChatValue::List> items_if_any(const ChatValue& value, ChatBudget& budget) {
  if (!is_true(value)) return ChatValue::List();
  return elements_of(value, budget);
}

bool flag_of(const ChatArguments& arguments, std::size_t place, std::string_view name) {
  const auto* found = arguments.find(place, name);
  return found != nullptr && is_true(*found);
}

struct Choice {
  bool is_kept = true;        // or rejected
  bool by_attribute = false;  // the first argument names one
};

// select, reject, selectattr and rejectattr differ in two bits. Without a test an item is judged by
// its truth; further arguments belong to the test.
Value choose(const ChatValue& value, const ChatArguments& arguments, Choice choice,
             ChatBudget& budget) {
  MUSTER_TRY(check_arguments(choice.is_kept ? "select" : "reject", arguments, SIZE_MAX, ""));
  const std::size_t first = choice.by_attribute ? 1 : 0;
  const auto* attribute = choice.by_attribute ? arguments.find(0, "") : nullptr;
  if (choice.by_attribute && attribute == nullptr)
    return invalid_error("an attribute's name is missing");
  const auto* test = arguments.find(first, "");
  if (test != nullptr && (test->as_text() == nullptr || !is_test(*test->as_text()))) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("a test that is not known: {}",
                             MUSTER_TRY(paid_text_of(*test, budget)).substr(0, 40))};
  }
  ChatArguments rest;
  if (test != nullptr) {
    rest.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                       arguments.values.end());
  }
  ChatValue::List kept;
  for (auto& item : MUSTER_TRY(items_if_any(value, budget))) {
    MUSTER_TRY(budget.spend());
    const auto tested = MUSTER_TRY(attribute_of(item, attribute, budget));
    const bool holds = test == nullptr
                           ? is_true(tested)
                           : MUSTER_TRY(apply_test(*test->as_text(), tested, rest, budget));
    if (holds == choice.is_kept) kept.push_back(item);
  }
  return iterated(std::move(kept), budget);
}

// The key of the best item is kept, so an attribute is looked up once for each item.
Value extreme(const ChatValue& value, const ChatArguments& arguments, bool is_largest,
              ChatBudget& budget) {
  const auto items = MUSTER_TRY(elements_of(value, budget));
  if (items.empty()) return ChatValue(ChatValue::Undefined{"the best of no items"});
  const bool counts_case = flag_of(arguments, 0, "case_sensitive");
  const auto* attribute = arguments.find(1, "attribute");
  std::size_t best = 0;
  auto best_key = MUSTER_TRY(key_of(items[0], attribute, counts_case, budget));
  for (std::size_t i = 1; i < items.size(); ++i) {
    auto key = MUSTER_TRY(key_of(items[i], attribute, counts_case, budget));
    if (!MUSTER_TRY(compare_values(is_largest ? ">" : "<", key, best_key, budget))) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

}  // namespace

Result<ChatValue> first_item(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  const auto items = MUSTER_TRY(elements_of(value, budget));
  if (items.empty()) return ChatValue(ChatValue::Undefined{"the first of no items"});
  value.leave_walk();
  return items.front();
}

Result<ChatValue> last_item(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  if (value.is_iterator()) return invalid_error("the last of an iterator");
  const auto items = MUSTER_TRY(elements_of(value, budget));
  return items.empty() ? ChatValue(ChatValue::Undefined{"the last of no items"}) : items.back();
}

Result<ChatValue> as_list_value(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  return ChatValue(MUSTER_TRY(elements_of(value, budget)));
}

Result<ChatValue> joined_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget) {
  const auto* separator = arguments.find(0, "d");
  const auto between =
      separator == nullptr ? std::string() : MUSTER_TRY(paid_text_of(*separator, budget));
  MUSTER_TRY(budget.take(between.size()));
  const auto* attribute = arguments.find(1, "attribute");
  std::string out;
  bool is_first = true;
  for (const auto& item : MUSTER_TRY(elements_of(value, budget))) {
    const auto value_of_item = MUSTER_TRY(attribute_of(item, attribute, budget));
    const auto part = MUSTER_TRY(paid_text_of(value_of_item, budget));
    MUSTER_TRY(budget.take(part.size() + between.size()));
    if (!is_first) out += between;
    is_first = false;
    out += part;
  }
  return ChatValue(std::move(out));
}

// The first argument names a filter, and the others are its own; without one an attribute is looked
// up.
Result<ChatValue> mapped_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget) {
  const auto* filter = arguments.values.empty() ? nullptr : arguments.values.data();
  if (filter == nullptr) MUSTER_TRY(check_arguments("map", arguments, 0, "attribute default"));
  const auto* attribute = arguments.find(SIZE_MAX, "attribute");
  const auto* absent = arguments.find(SIZE_MAX, "default");
  if (absent != nullptr && absent->is_none()) absent = nullptr;
  if (filter == nullptr ? attribute == nullptr : filter->as_text() == nullptr) {
    return invalid_error("map takes a filter's name or an attribute");
  }
  ChatArguments rest;
  if (filter != nullptr) {
    rest.values.assign(arguments.values.begin() + 1, arguments.values.end());
    rest.named = arguments.named;
  }
  ChatValue::List mapped;
  for (const auto& item : MUSTER_TRY(items_if_any(value, budget))) {
    mapped.push_back(MUSTER_TRY(filter != nullptr
                                    ? apply_filter(*filter->as_text(), item, rest, budget)
                                    : attribute_of(item, attribute, budget, absent)));
  }
  return iterated(std::move(mapped), budget);
}

Result<ChatValue> selected_items(const ChatValue& value, const ChatArguments& arguments,
                                 ChatBudget& budget) {
  return choose(value, arguments, {true, false}, budget);
}
Result<ChatValue> rejected_items(const ChatValue& value, const ChatArguments& arguments,
                                 ChatBudget& budget) {
  return choose(value, arguments, {false, false}, budget);
}
Result<ChatValue> selected_by_attribute(const ChatValue& value, const ChatArguments& arguments,
                                        ChatBudget& budget) {
  return choose(value, arguments, {true, true}, budget);
}
Result<ChatValue> rejected_by_attribute(const ChatValue& value, const ChatArguments& arguments,
                                        ChatBudget& budget) {
  return choose(value, arguments, {false, true}, budget);
}

// A text is reversed by characters and stays a text.
Result<ChatValue> reversed_items(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  auto items = MUSTER_TRY(elements_of(value, budget));
  std::reverse(items.begin(), items.end());
  if (value.is_iterator()) return ChatValue(std::move(items));
  if (value.as_text() == nullptr) return ChatValue::iterator(std::move(items));
  std::string out;
  for (const auto& item : items) out += *item.as_text();
  return ChatValue(std::move(out));
}

Result<ChatValue> ordered_items(const ChatValue& value, const ChatArguments& arguments,
                                ChatBudget& budget) {
  const auto items = MUSTER_TRY(elements_of(value, budget));
  const bool counts_case = flag_of(arguments, 1, "case_sensitive");
  const auto* attribute = arguments.find(2, "attribute");
  ChatValue::List keys;
  for (const auto& item : items) {
    keys.push_back(MUSTER_TRY(key_of(item, attribute, counts_case, budget)));
  }
  ChatValue::List ordered;
  for (const auto i : MUSTER_TRY(order_of(keys, flag_of(arguments, 0, "reverse"), budget))) {
    ordered.push_back(items[i]);
  }
  return taken(std::move(ordered), budget);
}

// Pairs are ordered by one of their places, so keys and values share the code.
Result<ChatValue> sorted_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget) {
  if (value.is_undefined()) return invalid_error(value.as_undefined()->name + " is undefined");
  const auto* by = arguments.find(1, "by");
  const auto by_name = by == nullptr ? std::string("key") : MUSTER_TRY(paid_text_of(*by, budget));
  if (by_name != "key" && by_name != "value") {
    return invalid_error("dictsort sorts by \"key\" or \"value\"");
  }
  const std::int64_t place = by_name == "value" ? 1 : 0;
  const auto pairs = MUSTER_TRY(map_items(value, {}, budget));
  ChatValue::List keys;
  const ChatValue attribute(place);
  for (const auto& pair : *pairs.as_list()) {
    keys.push_back(
        MUSTER_TRY(key_of(pair, &attribute, flag_of(arguments, 0, "case_sensitive"), budget)));
  }
  ChatValue::List ordered;
  for (const auto i : MUSTER_TRY(order_of(keys, flag_of(arguments, 2, "reverse"), budget))) {
    ordered.push_back((*pairs.as_list())[i]);
  }
  return taken(std::move(ordered), budget);
}

// Quadratic, since values have no hash; the budget pays for each comparison and so bounds the
// length.
Result<ChatValue> unique_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget) {
  const bool counts_case = flag_of(arguments, 0, "case_sensitive");
  const auto* attribute = arguments.find(1, "attribute");
  ChatValue::List kept;
  ChatValue::List keys;
  for (const auto& item : MUSTER_TRY(elements_of(value, budget))) {
    auto key = MUSTER_TRY(key_of(item, attribute, counts_case, budget));
    MUSTER_TRY(pay_for_comparisons(keys, key, budget));
    const bool is_known = std::any_of(keys.begin(), keys.end(),
                                      [&](const ChatValue& each) { return are_equal(each, key); });
    if (is_known) continue;
    keys.push_back(std::move(key));
    kept.push_back(item);
  }
  return iterated(std::move(kept), budget);
}

Result<ChatValue> largest_item(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget) {
  return extreme(value, arguments, /*is_largest=*/true, budget);
}
Result<ChatValue> smallest_item(const ChatValue& value, const ChatArguments& arguments,
                                ChatBudget& budget) {
  return extreme(value, arguments, /*is_largest=*/false, budget);
}

// Additions go through the operator, so a sum of floats, integers or lists behaves as written out.
Result<ChatValue> sum_of_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget) {
  const auto* attribute = arguments.find(0, "attribute");
  const auto* start = arguments.find(1, "start");
  ChatValue sum = start == nullptr ? ChatValue(std::int64_t{0}) : *start;
  for (const auto& item : MUSTER_TRY(elements_of(value, budget))) {
    const auto each = MUSTER_TRY(attribute_of(item, attribute, budget));
    sum = MUSTER_TRY(apply_operator("+", sum, each, budget));
  }
  return sum;
}

// What is undefined has no items, since templates go over optional fields without testing them.
Result<ChatValue> map_items(const ChatValue& value, const ChatArguments&, ChatBudget& budget) {
  ChatValue::List pairs;
  if (value.is_undefined()) return ChatValue(std::move(pairs));
  const auto* map = value.as_map();
  if (map == nullptr) return invalid_error(fmt::format("the items of {}", kind_name(value)));
  for (const auto& [key, item] : *map) {
    MUSTER_TRY(budget.take(key.size() + 3 * sizeof(ChatValue)));
    pairs.push_back(ChatValue::tuple({ChatValue(key), item}));
  }
  return ChatValue(std::move(pairs));
}

Result<ChatValue> iterated_items(const ChatValue& value, const ChatArguments& arguments,
                                 ChatBudget& budget) {
  const auto pairs = MUSTER_TRY(map_items(value, arguments, budget));
  return ChatValue::iterator(*pairs.as_list());
}

}  // namespace muster
