#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/generation_api.h"
#include "server/json_body.h"

namespace muster {

// Fields that bodies for replies have in every API. What they write into must outlive the list. A
// field's place is its name, where it belongs to an object with that object's before a dot.
//
// Errors: 400, naming the field.

/// A flag, a list and a text that are taken where they ask for nothing: false, none, "".
BodyField only_false(std::string_view place);
BodyField empty_list_field(std::string_view place);
BodyField empty_text_field(std::string_view place);

struct FieldRange {
  double least = 0;
  double most = 0;
};
BodyField number_field(std::string_view place, FieldRange range, double& into);

/// The most likely k; vLLM's and llama.cpp's -1, as 0, means all of them.
ApiStatus read_top_k(JsonValue& value, std::string_view place, std::uint32_t& into);

/// Any whole number from -2^63 to 2^64 - 1. Negative ones are taken as clients send them: only that
/// the same is the same matters.
ApiResult<WholeNumber> read_seed_number(JsonValue& value, std::string_view place);
ApiStatus read_seed(JsonValue& value, std::string_view place, std::optional<std::uint64_t>& into);

/// A seed that is not given is drawn.
void set_seed(const std::optional<std::uint64_t>& given, SamplingOptions& sampling);

/// A text or a list of them that end the reply; the empty list is none.
ApiStatus read_stops(JsonValue& value, std::string_view place, const GenerationLimits& limits,
                     std::vector<std::string>& stops);

}  // namespace muster
