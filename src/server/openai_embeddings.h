#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/embedding_format.h"
#include "server/rows_answer.h"
#include "serving/inference_service.h"

namespace muster {

/// A body of POST /v1/embeddings.
struct EmbeddingsRequest {
  EmbedCall call;
  EmbeddingFormat format = EmbeddingFormat::Float;
  bool is_normalized = false;  // rows of length 1 are asked for
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
/// "bulk") and `timeout_ms`. Of Jina's: `task`, `embedding_type`, `normalized` and texts as
/// `{"text": …}`; `input_type` as Cohere's and NVIDIA's clients send it, `output_dimension` as
/// litellm's for infinity. An empty string is a text.
///
/// Errors: 400 as OpenAI words them. Threads: pure.
/// Source: OpenAI, API reference, "Create embeddings"; Jina AI, Embeddings API; litellm,
/// llms/infinity/embedding/transformation.py.
ApiResult<EmbeddingsRequest> parse_embeddings(std::string body, const EmbeddingsLimits& limits);

/// The answer of OpenAI's form, its rows in one of the formats.
std::vector<RowSection> openai_sections(const EmbedAnswer& answer, EmbeddingFormat format);

}  // namespace muster
