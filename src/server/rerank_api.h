#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/call_fields.h"
#include "serving/inference_service.h"

namespace muster {

/// A body of POST /v1/rerank.
struct RerankRequest {
  RerankCall call;
  std::optional<std::uint64_t> top_n;  // the best so many; nullopt: all
  bool return_documents = false;
  bool is_tei = false;  // the documents came under TEI's name
};

/// Reads `query`, `documents` (Cohere's and Jina's name; strings or `{"text": …}`) or `texts`
/// (TEI's), `model`, `top_n`, `return_documents` (`return_text` is TEI's name of it), `raw_scores`,
/// and the fields of `add_call_fields`. The model may be left out: the first that ranks.
///
/// Errors: 400. Threads: pure.
/// Source: Cohere, API reference v2, "Rerank"; Jina AI, Reranker API; text-embeddings-inference,
/// OpenAPI of /rerank.
ApiResult<RerankRequest> parse_rerank(std::string body, const TextListLimits& limits,
                                      Duration deadline_most);

/// The places of the best `top_n` scores, equal ones in their order; nullopt: of all.
std::vector<std::size_t> best_first(const std::vector<float>& scores,
                                    std::optional<std::uint64_t> top_n);

/// `{"model", "results": [{"index", "relevance_score", "document"?: {"text"}}], "usage"}`, the best
/// first, equal ones in the order of their documents; 500 for a score that is not finite.
HttpResponse rerank_response(const RerankAnswer& answer, const RerankRequest& request);

}  // namespace muster
