// Fields of bodies that ask for replies, whichever API they are of.

#include "server/generation_fields.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>

#include "base/random_bits.h"
#include "server/call_fields.h"

namespace muster {

BodyField only_false(std::string_view place) {
  return {key_of(place), [place](JsonValue& value) -> ApiStatus {
            if (MUSTER_TRY(read_bool(value, place))) return unsupported_value(place, "false");
            return Done{};
          }};
}

BodyField empty_list_field(std::string_view place) {
  return {key_of(place), [place](JsonValue& value) -> ApiStatus {
            simdjson::ondemand::array array;
            if (value.get_array().get(array) != simdjson::SUCCESS) {
              return wrong_type(value, place, "an array");
            }
            bool is_empty = false;
            if (const auto fault = array.is_empty().get(is_empty)) return broken_json(fault);
            if (!is_empty) return unsupported_value(place, "an empty array");
            return Done{};
          }};
}

BodyField empty_text_field(std::string_view place) {
  return {key_of(place), [place](JsonValue& value) -> ApiStatus {
            simdjson::ondemand::json_type type{};
            if (const auto fault = value.type().get(type)) return broken_json(fault);
            std::string_view text;
            const bool is_text = type == simdjson::ondemand::json_type::string &&
                                 value.get_string().get(text) == simdjson::SUCCESS;
            if (!is_text || !text.empty()) return unsupported_value(place, "an empty string");
            return Done{};
          }};
}

BodyField number_field(std::string_view place, FieldRange range, double& into) {
  return {key_of(place), [place, range, &into](JsonValue& value) -> ApiStatus {
            into = MUSTER_TRY(read_number(value, place, range.least, range.most));
            return Done{};
          }};
}

ApiStatus read_top_k(JsonValue& value, std::string_view place, std::uint32_t& into) {
  const auto number = whole_number(value);
  if (!number) MUSTER_TRY(read_number(value, place, -1, UINT32_MAX));  // what is no number at all
  if (!number || number->magnitude > (number->is_negative ? 1U : UINT32_MAX)) {
    return wrong_field(place, "invalid_value",
                       fmt::format("Invalid '{}': expected an integer, -1 or greater.", place));
  }
  into = number->is_negative ? 0 : static_cast<std::uint32_t>(number->magnitude);
  return Done{};
}

ApiResult<WholeNumber> read_seed_number(JsonValue& value, std::string_view place) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  if (type != simdjson::ondemand::json_type::number) return wrong_type(value, place, "an integer");
  constexpr std::uint64_t kNegativeMost = std::uint64_t{1} << 63U;
  const auto number = whole_number(value);
  if (number && (!number->is_negative || number->magnitude <= kNegativeMost)) return *number;
  return wrong_field(
      place, "invalid_value",
      fmt::format("Invalid '{}': expected an integer from -2^63 to 2^64 - 1.", place));
}

ApiStatus read_seed(JsonValue& value, std::string_view place, std::optional<std::uint64_t>& into) {
  const auto number = MUSTER_TRY(read_seed_number(value, place));
  into = number.is_negative ? 0 - number.magnitude : number.magnitude;
  return Done{};
}

void set_seed(const std::optional<std::uint64_t>& given, SamplingOptions& sampling) {
  if (given) {
    sampling.seed = *given;
  } else {
    fill_random(std::as_writable_bytes(std::span(&sampling.seed, 1)));
  }
}

ApiStatus read_stops(JsonValue& value, std::string_view place, const GenerationLimits& limits,
                     std::vector<std::string>& stops) {
  const auto read = read_texts(
      value, place, {.texts_most = limits.stops_most, .text_bytes_most = limits.stop_bytes_most},
      false, stops);
  // Some clients send a list of none.
  if (!read && read.error().code != "empty_array") return read.error();
  for (const auto& stop : stops) {
    if (!stop.empty()) continue;
    return wrong_field(place, "invalid_value",
                       fmt::format("Invalid '{}': an empty string would end every reply.", place));
  }
  return Done{};
}

}  // namespace muster
