#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// Reads typed fields out of one JSON object and puts its file's name into every error.
///
/// Owner: the parser of one file; it borrows nothing after construction.
class JsonFields {
 public:
  /// Errors: Corrupt when `text` is not a JSON object; `file` is the name shown in messages.
  static Result<JsonFields> parse(std::string file, std::string_view text);

  /// The object under `key`, its own keys named as "key.inner" in messages.
  ///
  /// Errors: InvalidArgument when missing or not an object.
  Result<JsonFields> inner(std::string_view key) const;

  bool states(std::string_view key) const;  // present, null included
  bool has(std::string_view key) const;     // present and not null
  const nlohmann::json* find(std::string_view key) const;

  /// Errors: InvalidArgument when missing, not an integer, or outside 1..max.
  Result<std::uint32_t> positive(std::string_view key, std::uint32_t max) const;
  Result<std::uint32_t> positive_or(std::string_view key, std::uint32_t max,
                                    std::uint32_t fallback) const;
  /// Errors: InvalidArgument when present and of another type.
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<std::string> text_or(std::string_view key, std::string_view fallback) const;

  Error wrong(std::string_view key, std::string_view wanted) const;

 private:
  JsonFields(std::string file, std::string prefix, nlohmann::json object)
      : file_(std::move(file)), prefix_(std::move(prefix)), object_(std::move(object)) {}

  std::string file_;
  std::string prefix_;  // "text_config." within an inner object
  nlohmann::json object_;
};

}  // namespace muster
