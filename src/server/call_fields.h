#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/json_body.h"
#include "serving/inference_service.h"

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

/// Those of them that do not say how a text is cut.
void add_caller_fields(std::vector<BodyField>& fields, CallOptions& options, bool& names_model,
                       Duration deadline_most);

/// A field that is a flag, and one that is a name of at most `kNameBytesMost` bytes. They write
/// into `into`, which must outlive the list. `place`: as `none_field` has it.
BodyField flag_field(std::string_view place, bool& into);
BodyField name_field(std::string_view name, std::string& into);
/// A field that clients send and that nothing here does: taken as null alone. `place` is its name,
/// where it belongs to an object with that object's before a dot.
BodyField none_field(std::string_view place);
BodyField prompt_field(std::optional<std::string>& into, std::string_view place = "prompt_name");

/// How a text is cut. `place`: as `none_field` has it.
BodyField truncate_field(CallOptions& options, std::string_view place = "truncate");
BodyField truncation_side_field(CallOptions& options,
                                std::string_view place = "truncation_direction");

/// How many values a vector shall have: `dimensions`, `output_dimension`.
BodyField dimensions_field(std::string_view name, std::optional<std::uint32_t>& into);

/// "Missing required parameter: 'input'."
ApiError missing_field(std::string_view name);

/// "Unsupported 'n': expected 1.": what would change the answer and is not done.
ApiError unsupported_value(std::string_view name, std::string_view expected);

/// "Invalid 'input': array too long. Expected an array with maximum length 2048."
ApiError list_too_long(std::string_view name, std::uint64_t most);
ApiError empty_list(std::string_view name);

struct TextListLimits {
  std::uint64_t texts_most = 2048;
  std::uint64_t text_bytes_most = 1 << 20;
};

/// The text of `{"text": "…"}` where `takes_objects`, else of the value itself. Errors: 400.
ApiResult<std::string> read_document(JsonValue& value, std::string_view name,
                                     const TextListLimits& limits, bool takes_objects);

/// Appends a text or a list of texts, counted while they are read. Where `takes_objects`, an
/// element may be `{"text": "…"}` too.
///
/// Errors: 400.
ApiStatus read_texts(JsonValue& value, std::string_view name, const TextListLimits& limits,
                     bool takes_objects, std::vector<std::string>& texts);

}  // namespace muster
