#pragma once

#include <string>
#include <vector>

#include "server/json_body.h"
#include "service/inference_service.h"

namespace muster {

/// Names that clients send are bounded; no model, prompt or user is called anything longer.
inline constexpr std::uint64_t kNameBytesMost = 512;

/// Adds the fields that every call for computation has: `model`, `user`, `truncate`,
/// `truncation_direction`, `lane`, `timeout_ms`. They write into `options` and
/// `names_model`, which must outlive the list.
///
/// names_model: set when the body names a model, be it the empty one that stands for the first.
void add_call_fields(std::vector<BodyField>& fields, CallOptions& options, bool& names_model,
                     Duration deadline_most);

/// "Missing required parameter: 'input'."
ApiError missing_field(std::string_view name);

/// "Invalid 'input': array too long. Expected an array with maximum length 2048."
ApiError list_too_long(std::string_view name, std::uint64_t most);
ApiError empty_list(std::string_view name);

struct TextListLimits {
  std::uint64_t texts_most = 2048;
  std::uint64_t text_bytes_most = 1 << 20;
};

/// Appends a text or a list of texts, counted while they are read. Where `takes_objects`, an
/// element may be `{"text": "…"}` too.
///
/// Errors: 400.
ApiStatus read_texts(JsonValue& value, std::string_view name, const TextListLimits& limits,
                     bool takes_objects, std::vector<std::string>& texts);

}  // namespace muster
