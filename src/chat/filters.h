#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/budget.h"
#include "chat/function.h"
#include "chat/value.h"

namespace muster {

/// Whether Jinja's filter, or transformers' own `tojson`, is known by this name; all names, sorted.
bool is_filter(std::string_view name);
std::vector<std::string> filter_names();

/// Applies a filter.
///
/// Errors: InvalidArgument for a value or argument that it does not take, ResourceExhausted.
/// Source: Jinja 3.1, filters.py; json.dumps of CPython 3.11 for tojson.
Result<ChatValue> apply_filter(std::string_view name, const ChatValue& value,
                               const ChatArguments& arguments, ChatBudget& budget);

/// The same for tests: "defined", "string", "divisibleby". Source: Jinja 3.1, tests.py.
bool is_test(std::string_view name);
std::vector<std::string> test_names();
Result<bool> apply_test(std::string_view name, const ChatValue& value,
                        const ChatArguments& arguments, ChatBudget& budget);

/// `text_of`, with the walk over a list or map paid for before it is taken.
Result<std::string> paid_text_of(const ChatValue& value, ChatBudget& budget);

/// Pays for comparing each of the items with a value.
Status pay_for_comparisons(const ChatValue::List& items, const ChatValue& value,
                           ChatBudget& budget);

/// Pays for looking a key up in a map or among the fields of a namespace.
Status pay_for_look_up(const ChatValue::Map& map, std::string_view key, ChatBudget& budget);

/// Calls a method of a text, map, list or loop: "strip", "items", "cycle".
///
/// Errors: Unsupported for a method that is not known, by name; as apply_filter.
/// Source: CPython 3.11, str, dict and list; Jinja 3.1, runtime.py, LoopContext. What changes its
/// object is refused, as in Jinja's ImmutableSandboxedEnvironment.
Result<ChatValue> call_method(const ChatValue& object, std::string_view name,
                              const ChatArguments& arguments, ChatBudget& budget);

/// Whether Python's text, list or map has a method of this name, which then hides a map's key.
bool has_method(const ChatValue& value, std::string_view name);

/// A method that is looked up and not called: a function, which is true and defined; undefined for
/// one that changes a map, which Jinja's sandbox does not let through. The function holds no
/// object, so that no value can hold itself, and a call of it is refused by name.
ChatValue uncalled_method(std::string_view name);

/// Python's and Jinja's operators: "+", "//", "~", "<", "in".
///
/// Errors: InvalidArgument for kinds of values that do not go together, by their names.
Result<ChatValue> apply_operator(std::string_view name, const ChatValue& left,
                                 const ChatValue& right, ChatBudget& budget);
Result<bool> compare_values(std::string_view name, const ChatValue& left, const ChatValue& right,
                            ChatBudget& budget);

/// The elements that a for goes over: of a list, of an iterator once, of a map its keys, of a text
/// its characters, of what is undefined none.
Result<ChatValue::List> elements_of(const ChatValue& value, ChatBudget& budget);

/// `value[index]` or `value.index`: an element of a list, a character, a key's value; where there
/// is none a method of that name, else undefined. Errors: InvalidArgument when `value` is undefined
/// itself.
Result<ChatValue> element_of(const ChatValue& value, const ChatValue& index, ChatBudget& budget);

/// json.dumps.
struct JsonStyle {
  std::optional<std::string> indent;  // of each level; nullopt: on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ensures_ascii = false;
  bool sorts_keys = false;
};
Result<std::string> json_text(const ChatValue& value, const JsonStyle& style, ChatBudget& budget);

}  // namespace muster
