#pragma once

#include <simdjson.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "server/api_error.h"

namespace muster {

using JsonValue = simdjson::ondemand::value;

/// What reads a field's value: a lambda with a few references. It is kept in place, which spares a
/// short request the allocations of a std::function for each field.
class FieldReader {
 public:
  template <typename Read>
  FieldReader(Read read)  // NOLINT(google-explicit-constructor): a lambda stands where it is used
      : call_([](const std::byte* kept, JsonValue& value) -> ApiStatus {
          return (*std::launder(reinterpret_cast<const Read*>(kept)))(value);
        }) {
    static_assert(std::is_trivially_copyable_v<Read> && sizeof(Read) <= kBytesMost &&
                  alignof(Read) <= alignof(void*));
    ::new (static_cast<void*>(kept_.data())) Read(read);
  }

  ApiStatus operator()(JsonValue& value) const { return call_(kept_.data(), value); }

 private:
  static constexpr std::size_t kBytesMost = 40;

  alignas(void*) std::array<std::byte, kBytesMost> kept_;
  ApiStatus (*call_)(const std::byte*, JsonValue&);
};

/// A field of a request's body, for the names that are known and the one that was meant.
struct BodyField {
  std::string_view name;
  FieldReader read;
};

/// The name of a field by its place: `role` of `messages.role`. Valid as long as the place.
std::string_view key_of(std::string_view place);

/// Reads a body that must be one JSON object, field by field, and stops at the first fault: what
/// comes after it costs nothing. A field that is not listed, or comes twice, is refused; null for a
/// field is as if it were not there. No value is skipped, so nesting has no depth to bound.
///
/// body: taken, since the parser needs room behind it.
/// Errors: 400 as OpenAI words them. Threads: pure.
ApiStatus read_body(std::string body, std::span<const BodyField> fields);

/// The same for a value that must be an object: `name` is its own, and messages put it before the
/// name of a field.
ApiStatus read_object(JsonValue& value, std::string_view name, std::span<const BodyField> fields);

/// The value as text; one with half of a surrogate pair is refused. Errors: 400.
ApiResult<std::string> read_text(JsonValue& value, std::string_view name, std::uint64_t bytes_most);
ApiResult<bool> read_bool(JsonValue& value, std::string_view name);

/// A whole number, with its sign apart: a seed may be anything from -2^63 to 2^64 - 1.
struct WholeNumber {
  std::uint64_t magnitude = 0;
  bool is_negative = false;  // not of 0
};
/// The number of a value; nullopt where it is none, not whole or of more than 64 bits. It may be
/// written as 16, 16.0 or 1.6e1: languages without integers send what they compute.
std::optional<WholeNumber> whole_number(JsonValue& value);

/// As `whole_number`.
ApiResult<std::uint64_t> read_integer(JsonValue& value, std::string_view name, std::uint64_t least,
                                      std::uint64_t most);
ApiResult<double> read_number(JsonValue& value, std::string_view name, double least, double most);

/// "Invalid type for 'input': expected a string, but got a boolean instead."
ApiError wrong_type(JsonValue& value, std::string_view name, std::string_view expected);

/// The body is no JSON. Source: simdjson's error codes.
ApiError broken_json(simdjson::error_code code);

}  // namespace muster
