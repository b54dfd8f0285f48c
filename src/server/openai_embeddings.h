#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_message.h"
#include "server/api_error.h"
#include "service/inference_service.h"

namespace muster {

enum class EmbeddingFormat : std::uint8_t {
  Float,   // numbers in JSON, the shortest that read back as the same float32
  Base64,  // in JSON, of the float32 in little-endian order
  Raw,     // application/octet-stream: [texts, dim] float32, little-endian
};

/// A body of POST /v1/embeddings.
struct EmbeddingsRequest {
  EmbedCall call;
  EmbeddingFormat format = EmbeddingFormat::Float;
};

struct EmbeddingsLimits {
  std::uint32_t texts_most = 2048;  // of one request; OpenAI's limit
  Duration deadline_most = std::chrono::seconds(600);
  /// Bytes of one text. No encoder reads more than a few ten thousand tokens; what is longer by far
  /// is a mistake, and is told at once instead of being cut.
  std::uint64_t text_bytes_most = 1 << 20;
  std::uint32_t ids_most = 1 << 18;  // of one text that comes as token ids
};

/// Reads `input` (a text, a list of texts, a list of token ids, a list of lists of them), `model`,
/// `encoding_format`, `dimensions`, `user`, and muster's own `prompt_name`, `truncate`,
/// `truncation_direction` ("Left", "Right"; these three as TEI has them), `lane` ("interactive",
/// "bulk") and `timeout_ms`. An empty string is a text. Texts are counted while they are read, so
/// that too many cost nothing.
///
/// Errors: 400 as OpenAI words them. Threads: pure.
/// Source: OpenAI, API reference, "Create embeddings".
ApiResult<EmbeddingsRequest> parse_embeddings(std::string body, const EmbeddingsLimits& limits);

/// Why the service did not do a call, naming the field of the body. What sends ids that the model
/// does not have is most likely langchain-openai, which makes them with OpenAI's own tokenizer
/// unless told not to.
ApiError embeddings_error(const CallError& error);

/// The whole answer, as EmbeddingsAnswer writes it, in one go.
HttpResponse embeddings_response(EmbedAnswer answer, EmbeddingFormat format,
                                 std::optional<std::uint32_t> dimensions);

}  // namespace muster
