#pragma once

#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/call_fields.h"
#include "server/embedding_format.h"
#include "server/rerank_api.h"
#include "server/rows_answer.h"
#include "serving/inference_service.h"

namespace muster {

// The bodies of version 2 of Cohere's API, and its answers.
//
// Errors: 400. Threads: pure.
// Source: Cohere, API reference v2, "Embed" and "Rerank"; cohere-python, v2/raw_client.py and
// types/embed_by_type_response.py; litellm, llms/cohere (usage is read of meta.billed_units).

/// A body of POST /v2/embed.
struct CohereEmbedRequest {
  EmbedCall call;
  std::vector<EmbeddingFormat> formats;  // at least one
};

/// Reads `texts`, `model`, `input_type`, `embedding_types` (float where none is named),
/// `output_dimension`, and `truncate`: NONE, START or END.
ApiResult<CohereEmbedRequest> parse_cohere_embed(std::string body, const TextListLimits& limits,
                                                 Duration deadline_most);

/// `{"id","embeddings":{"float":[[…],…],…},"meta","response_type":"embeddings_by_type"}`.
std::vector<RowSection> cohere_sections(const EmbedAnswer& answer,
                                        const std::vector<EmbeddingFormat>& formats,
                                        const std::string& id);

/// `{"id","results":[{"index","relevance_score","document"?}],"meta"}`, the best first.
HttpResponse cohere_ranking(const RerankAnswer& answer, const RerankRequest& request,
                            const std::string& id);

}  // namespace muster
