#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// A number about a device that an expression may name, and what it means; docs/strategies.md.
struct PlacementName {
  std::string_view name;  // "queued_seconds"
  std::string_view meaning;
};

/// How many there are.
inline constexpr std::size_t kPlacementNameCount = 18;

/// A user's own strategy: arithmetic (+ - * / %), comparison (1 or 0), `&&`, `||`, `!`, `?:`,
/// parentheses, numbers, min(a, b, …), max(a, b, …), abs(a) over the names of `names()`. The device
/// with the lowest value wins; one whose value is not finite, or needs a number that is not known
/// there, is passed over.
///
/// Pure and immutable. Bounded: 4,096 characters, 64 levels.
class PlacementExpression {
 public:
  static std::span<const PlacementName> names();

  /// Errors: InvalidArgument with the column, and the nearest name for an unknown one.
  static Result<std::shared_ptr<const PlacementExpression>> parse(std::string_view text);

  /// values: in the order of `names()`; nullopt: not known. nullopt: no finite value.
  std::optional<double> evaluate(std::span<const std::optional<double>> values) const;

  const std::string& text() const { return text_; }

 private:
  class Parser;
  struct Node;
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace muster
