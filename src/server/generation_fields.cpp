// Fields of bodies that ask for replies, whichever API they are of.

#include "server/generation_fields.h"

#include <cstddef>
#include <span>

#include "base/random_bits.h"
#include "server/call_fields.h"

namespace muster {

BodyField only_false(std::string_view name) {
  return {name, [name](JsonValue& value) -> ApiStatus {
            if (MUSTER_TRY(read_bool(value, name))) return unsupported_value(name, "false");
            return Done{};
          }};
}

BodyField empty_list_field(std::string_view name) {
  return {name, [name](JsonValue& value) -> ApiStatus {
            simdjson::ondemand::array array;
            if (value.get_array().get(array) != simdjson::SUCCESS) {
              return wrong_type(value, name, "an array");
            }
            bool is_empty = false;
            if (const auto fault = array.is_empty().get(is_empty)) return broken_json(fault);
            if (!is_empty) return unsupported_value(name, "an empty array");
            return Done{};
          }};
}

BodyField empty_text_field(std::string_view name) {
  return {name, [name](JsonValue& value) -> ApiStatus {
            simdjson::ondemand::json_type type{};
            if (const auto fault = value.type().get(type)) return broken_json(fault);
            std::string_view text;
            const bool is_text = type == simdjson::ondemand::json_type::string &&
                                 value.get_string().get(text) == simdjson::SUCCESS;
            if (!is_text || !text.empty()) return unsupported_value(name, "an empty string");
            return Done{};
          }};
}

BodyField number_field(std::string_view name, FieldRange range, double& into) {
  return {name, [name, range, &into](JsonValue& value) -> ApiStatus {
            into = MUSTER_TRY(read_number(value, name, range.least, range.most));
            return Done{};
          }};
}

ApiStatus read_top_k(JsonValue& value, std::uint32_t& into) {
  const auto number = whole_number(value);
  if (!number) MUSTER_TRY(read_number(value, "top_k", -1, UINT32_MAX));  // what is no number at all
  if (!number || number->magnitude > (number->is_negative ? 1U : UINT32_MAX)) {
    return wrong_field("top_k", "invalid_value",
                       "Invalid 'top_k': expected an integer, -1 or greater.");
  }
  into = number->is_negative ? 0 : static_cast<std::uint32_t>(number->magnitude);
  return Done{};
}

ApiStatus read_seed(JsonValue& value, std::optional<std::uint64_t>& into) {
  const auto number = whole_number(value);
  if (!number) MUSTER_TRY(read_integer(value, "seed", 0, UINT64_MAX));  // why not
  into = number->is_negative ? 0 - number->magnitude : number->magnitude;
  return Done{};
}

void set_seed(const std::optional<std::uint64_t>& given, SamplingOptions& sampling) {
  if (given) {
    sampling.seed = *given;
  } else {
    fill_random(std::as_writable_bytes(std::span(&sampling.seed, 1)));
  }
}

ApiStatus read_stops(JsonValue& value, const GenerationLimits& limits,
                     std::vector<std::string>& stops) {
  const auto read = read_texts(
      value, "stop", {.texts_most = limits.stops_most, .text_bytes_most = limits.stop_bytes_most},
      false, stops);
  // Some clients send a list of none.
  if (!read && read.error().code != "empty_array") return read.error();
  for (const auto& stop : stops) {
    if (!stop.empty()) continue;
    return wrong_field("stop", "invalid_value",
                       "Invalid 'stop': an empty string would end every reply.");
  }
  return Done{};
}

}  // namespace muster
