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

/// What a chat template works on: JSON's values, with the keys of an object in their order.
///
/// A copy shares the lists and maps of its original. Whoever keeps a value to himself may change
/// them; a template does so only with those that it has made.
class ChatValue {
 public:
  using List = std::vector<ChatValue>;
  using Map = std::vector<std::pair<std::string, ChatValue>>;  // each key once

  ChatValue() = default;                                                     // none
  ChatValue(bool flag) : value_(flag) {}                                     // NOLINT
  ChatValue(std::int64_t number) : value_(number) {}                         // NOLINT
  ChatValue(double number) : value_(number) {}                               // NOLINT
  ChatValue(std::string text) : value_(std::move(text)) {}                   // NOLINT
  ChatValue(std::string_view text) : value_(std::string(text)) {}            // NOLINT
  ChatValue(const char* text) : value_(std::string(text)) {}                 // NOLINT
  ChatValue(List list) : value_(std::make_shared<List>(std::move(list))) {}  // NOLINT
  ChatValue(Map map) : value_(std::make_shared<Map>(std::move(map))) {}      // NOLINT

  /// Errors: InvalidArgument for broken JSON, a key twice, or nesting above 64.
  static Result<ChatValue> parse(std::string_view json);

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  /// nullptr where the value is of another kind.
  const bool* as_flag() const { return std::get_if<bool>(&value_); }
  const std::int64_t* as_integer() const { return std::get_if<std::int64_t>(&value_); }
  const double* as_float() const { return std::get_if<double>(&value_); }
  const std::string* as_text() const { return std::get_if<std::string>(&value_); }
  const List* as_list() const;
  const Map* as_map() const;

  /// The value of a map's key; nullptr for another key or kind of value.
  const ChatValue* find(std::string_view key) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, std::shared_ptr<List>,
               std::shared_ptr<Map>>
      value_;
};

}  // namespace muster
