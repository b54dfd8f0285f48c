#pragma once

#include "base/result.h"
#include "chat/budget.h"
#include "chat/function.h"
#include "chat/value.h"

namespace muster {

// Jinja's filters on lists; `apply_filter` has them by their names. Where Jinja makes a generator,
// they make an iterator.
// Errors: as `apply_filter`. Source: Jinja 3.1, filters.py.

Result<ChatValue> first_item(const ChatValue& value, const ChatArguments& arguments,
                             ChatBudget& budget);
Result<ChatValue> last_item(const ChatValue& value, const ChatArguments& arguments,
                            ChatBudget& budget);
Result<ChatValue> as_list_value(const ChatValue& value, const ChatArguments& arguments,
                                ChatBudget& budget);
/// join(separator, attribute).
Result<ChatValue> joined_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget);
/// map(attribute=..., default=...) or map("filter", ...).
Result<ChatValue> mapped_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget);
/// select("test", ...) and its like; selectattr("attribute", "test", ...).
Result<ChatValue> selected_items(const ChatValue& value, const ChatArguments& arguments,
                                 ChatBudget& budget);
Result<ChatValue> rejected_items(const ChatValue& value, const ChatArguments& arguments,
                                 ChatBudget& budget);
Result<ChatValue> selected_by_attribute(const ChatValue& value, const ChatArguments& arguments,
                                        ChatBudget& budget);
Result<ChatValue> rejected_by_attribute(const ChatValue& value, const ChatArguments& arguments,
                                        ChatBudget& budget);
/// reverse: of a text its characters, of an iterator a list, else an iterator.
Result<ChatValue> reversed_items(const ChatValue& value, const ChatArguments& arguments,
                                 ChatBudget& budget);
/// sort(reverse, case_sensitive, attribute); dictsort(case_sensitive, by, reverse).
Result<ChatValue> ordered_items(const ChatValue& value, const ChatArguments& arguments,
                                ChatBudget& budget);
Result<ChatValue> sorted_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget);
/// unique(case_sensitive, attribute).
Result<ChatValue> unique_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget);
Result<ChatValue> largest_item(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget);
Result<ChatValue> smallest_item(const ChatValue& value, const ChatArguments& arguments,
                                ChatBudget& budget);
Result<ChatValue> sum_of_items(const ChatValue& value, const ChatArguments& arguments,
                               ChatBudget& budget);
/// The pairs of a map, each a tuple of key and value; as a list, and as the filter `items` gives
/// them.
Result<ChatValue> map_items(const ChatValue& value, const ChatArguments& arguments,
                            ChatBudget& budget);
Result<ChatValue> iterated_items(const ChatValue& value, const ChatArguments& arguments,
                                 ChatBudget& budget);

}  // namespace muster
