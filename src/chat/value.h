#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace muster {

class ChatFunction;

/// What a chat template works on: JSON's values, with the keys of an object in their order, and
/// what only a running template has: undefined values, namespaces and functions.
///
/// A copy shares texts, lists and maps with its original; nothing ever changes them. The fields of
/// a namespace can change, for all that share it, and an iterator is gone over once for all.
class ChatValue {
 public:
  using List = std::vector<ChatValue>;
  using Map = std::vector<std::pair<std::string, ChatValue>>;  // each key once

  /// A value that is not there: the name that it was looked for by.
  struct Undefined {
    std::string name;
  };
  /// Jinja's `namespace()`, and the `loop` of a for statement, whose methods need `index`.
  struct Namespace {
    Map fields;
    bool is_loop = false;
  };

  ChatValue() = default;                              // none
  ChatValue(bool flag) : value_(flag) {}              // NOLINT
  ChatValue(std::int64_t number) : value_(number) {}  // NOLINT
  ChatValue(double number) : value_(number) {}        // NOLINT
  ChatValue(std::string text)                         // NOLINT
      : value_(std::make_shared<const std::string>(std::move(text))) {}
  ChatValue(std::string_view text) : ChatValue(std::string(text)) {}           // NOLINT
  ChatValue(const char* text) : ChatValue(std::string(text)) {}                // NOLINT
  ChatValue(List list) : value_(items_of(std::move(list), false)) {}           // NOLINT
  ChatValue(Map map) : value_(entries_of(std::move(map))) {}                   // NOLINT
  ChatValue(Undefined undefined) : value_(std::move(undefined)) {}             // NOLINT
  ChatValue(std::shared_ptr<Namespace> fields) : value_(std::move(fields)) {}  // NOLINT
  ChatValue(std::shared_ptr<const ChatFunction> function)                      // NOLINT
      : value_(std::move(function)) {}

  /// A list that prints in round brackets.
  static ChatValue tuple(List list);

  /// What map, select, reverse and their like make: true whatever it holds, without a length or
  /// places, and gone over once.
  static ChatValue iterator(List list);

  /// Of equal keys the last value stays, as in Python.
  /// Errors: InvalidArgument for broken JSON, an integer beyond 64 bits, or nesting above 64.
  static Result<ChatValue> parse(std::string_view json);

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(value_); }
  /// nullptr where the value is of another kind.
  const bool* as_flag() const { return std::get_if<bool>(&value_); }
  const std::int64_t* as_integer() const { return std::get_if<std::int64_t>(&value_); }
  const double* as_float() const { return std::get_if<double>(&value_); }
  const std::string* as_text() const { return pointer_of<std::shared_ptr<const std::string>>(); }
  const List* as_list() const {
    const auto* items = pointer_of<std::shared_ptr<const Items>>();
    return items == nullptr ? nullptr : &items->list;
  }
  bool is_tuple() const {
    const auto* items = pointer_of<std::shared_ptr<const Items>>();
    return items != nullptr && items->is_tuple;
  }
  bool is_iterator() const { return std::holds_alternative<std::shared_ptr<Iterator>>(value_); }
  /// The items of an iterator the first time, none after that.
  /// Errors: Unsupported where the first walk was left, as what remains is not known.
  Result<List> walk() const;
  /// The walk over an iterator has ended before its last item; nothing for another kind.
  void leave_walk() const;

  const Map* as_map() const {
    const auto* entries = pointer_of<std::shared_ptr<const Entries>>();
    return entries == nullptr ? nullptr : &entries->map;
  }
  const Undefined* as_undefined() const { return std::get_if<Undefined>(&value_); }
  const std::shared_ptr<Namespace>* as_namespace() const {
    return std::get_if<std::shared_ptr<Namespace>>(&value_);
  }
  const ChatFunction* as_function() const {
    return pointer_of<std::shared_ptr<const ChatFunction>>();
  }

  /// What a walk over a value meets. A list that holds another one twice is small in memory, but
  /// the walk meets what is shared as often as it stands there.
  struct Measure {
    std::uint64_t weight = 1;      // values and bytes of their texts; UINT64_MAX: that or more
    std::uint32_t depth = 0;       // lists and maps within each other
    bool holds_namespace = false;  // within a list or map
  };
  /// Cost: none; it is counted when a list or map is made.
  Measure measure() const;

  /// The value of a map's key; nullptr for another key or kind of value.
  const ChatValue* find(std::string_view key) const;

 private:
  struct Items {
    List list;
    bool is_tuple = false;
    Measure measure = {};
  };
  struct Entries {
    Map map;
    Measure measure = {};
  };
  struct Iterator {
    enum class State : std::uint8_t { Fresh, Left, Spent };
    std::shared_ptr<const Items> items;
    State state = State::Fresh;
  };
  static std::shared_ptr<const Items> items_of(List list, bool is_tuple);
  static std::shared_ptr<const Entries> entries_of(Map map);

  template <typename Pointer>
  auto pointer_of() const -> decltype(std::declval<Pointer>().get()) {
    const auto* pointer = std::get_if<Pointer>(&value_);
    return pointer == nullptr ? nullptr : pointer->get();
  }

  std::variant<std::monostate, bool, std::int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const Items>, std::shared_ptr<const Entries>, Undefined,
               std::shared_ptr<Namespace>, std::shared_ptr<const ChatFunction>,
               std::shared_ptr<Iterator>>
      value_;
};

/// The kind of a value as Python names its type: "str", "int", "list".
std::string_view kind_name(const ChatValue& value);

/// Whether a condition holds, as in Python: not for none, undefined, zero and what is empty.
bool is_true(const ChatValue& value);

/// Python's ==: numbers by value, True as 1; lists and maps by their elements.
bool are_equal(const ChatValue& a, const ChatValue& b);

/// The text of a value within a template's output: Python's str(). Undefined is empty.
std::string text_of(const ChatValue& value);

/// Python's repr(): texts in quotes. Source: CPython 3.11, unicode_repr and float_repr_style short.
std::string quoted_text_of(const ChatValue& value);

}  // namespace muster
