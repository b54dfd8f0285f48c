#pragma once

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/error.h"

namespace muster {

/// Either a T or the Error that says why not. It is read like std::expected<T, Error>, which g++ 12
/// has only in C++23; unlike there, an Error returns as itself, without std::unexpected.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return Error{...};` read as what they are.
  Result(T value) : state_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // Cold: what leads to an error is laid out apart from the way that succeeds.
  [[gnu::cold, gnu::noinline]] Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& operator*() & { return *checked(); }
  const T& operator*() const& { return *checked(); }
  T&& operator*() && { return std::move(*checked()); }
  T* operator->() { return checked(); }
  const T* operator->() const { return checked(); }

  const Error& error() const {
    MUSTER_CHECK(!has_value());
    return *std::get_if<Error>(&state_);
  }

 private:
  T* checked() {
    MUSTER_CHECK(has_value());
    return std::get_if<T>(&state_);
  }
  const T* checked() const {
    MUSTER_CHECK(has_value());
    return std::get_if<T>(&state_);
  }

  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;

/// Yields the value of a Result, or returns its error from the enclosing function. It stands alone
/// on a line or as a whole initialiser: `const auto plan = MUSTER_TRY(make_plan(goal));`.
/// A GNU statement expression: both compilers we build with have it.
#define MUSTER_TRY(expression)                          \
  __extension__({                                       \
    auto muster_outcome = (expression);                 \
    if (!muster_outcome) return muster_outcome.error(); \
    *std::move(muster_outcome);                         \
  })

}  // namespace muster
