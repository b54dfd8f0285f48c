#pragma once

#include <cstdint>
#include <string_view>

#include "server/json_body.h"
#include "serving/inference_service.h"

namespace muster {

struct InputLimits {
  std::uint32_t texts_most = 2048;  // of one request; OpenAI's limit
  /// Bytes of one text. No encoder reads more than a few ten thousand tokens; what is longer by far
  /// is a mistake, and is told at once instead of being cut.
  std::uint64_t text_bytes_most = 1 << 20;
  std::uint32_t ids_most = 1 << 18;  // of one text that comes as token ids
};

/// What the elements of a list of texts may be beside strings.
struct InputForms {
  bool takes_ids = true;       // token ids of one text, or of several
  bool takes_objects = false;  // {"text": "…"}, as Jina's clients send it
};

/// Reads what is to be embedded: a text, a list of texts, and what `forms` adds. Texts are counted
/// while they are read, so that too many cost nothing.
///
/// name: of the field, for messages. Errors: 400 as OpenAI words them. Threads: pure.
ApiStatus read_input(JsonValue& value, std::string_view name, const InputLimits& limits,
                     InputForms forms, EmbedCall& call);

/// 400: ids that are not of the model's tokenizer. What sends them is most likely langchain-openai,
/// which makes them with OpenAI's own tokenizer unless told not to.
ApiError unknown_ids(std::string_view name, std::string_view what);

}  // namespace muster
