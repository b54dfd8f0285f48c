#pragma once

#include <cstddef>
#include <string>
#include <string_view>
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

/// Refuses an argument that is not read: one by place beyond the first `place_count`, or by another
/// name than these, with blanks between them. What is read by place too, stands first.
///
/// Errors: Unsupported, with what is called and the argument: "an argument of find that is not
/// known: 2".
Status check_arguments(std::string_view callee, const ChatArguments& arguments,
                       std::size_t place_count, std::string_view names);

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
