#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/value.h"

namespace muster {

/// What stands in the parentheses of a call, a filter or a test.
struct ChatArguments {
  std::vector<ChatValue> values;                         // by place
  std::vector<std::pair<std::string, ChatValue>> named;  // by name

  /// The argument of a place or, failing that, of a name; nullptr where neither is given.
  const ChatValue* find(std::size_t place, std::string_view name) const {
    if (place < values.size()) return &values[place];
    for (const auto& [each, value] : named) {
      if (each == name) return &value;
    }
    return nullptr;
  }
};

class ChatBudget;

/// Something that a template can call: a macro, or a function of its environment.
///
/// Threads: used by one rendering.
class ChatFunction {
 public:
  virtual ~ChatFunction() = default;
  virtual Result<ChatValue> call(const ChatArguments& arguments, ChatBudget& budget) const = 0;
};

}  // namespace muster
