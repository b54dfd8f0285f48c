#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/http_message.h"
#include "server/api_error.h"
#include "server/call_fields.h"
#include "serving/inference_service.h"

namespace muster {

/// A body of vLLM's POST /score: pairs of texts.
struct ScoreRequest {
  CallOptions options;
  std::vector<std::string> first;  // one for all of `second`, or one for each
  std::vector<std::string> second;
  bool raw_scores = false;
};

/// Reads the two sides, each a text or a list of texts, under one of vLLM's pairs of names
/// (`text_1` and `text_2`, `data_1` and `data_2`, `queries` and `documents` or `items`), `model`,
/// and `use_activation` (false: raw scores).
///
/// Errors: 400. Threads: pure.
/// Source: vLLM, entrypoints/pooling/scoring/protocol.py.
ApiResult<ScoreRequest> parse_score(std::string body, const TextListLimits& limits,
                                    Duration deadline_most);

/// The cosine of each pair, of rows that are first those of `first` and then those of `second`; in
/// float64, and 0 with a row of zeros.
std::vector<float> pair_cosines(std::span<const float> rows, std::size_t dim,
                                std::size_t first_count);

/// `{"id","object":"list","created","model","data":[{"index","object":"score","score"}],"usage"}`.
HttpResponse score_response(const std::string& id, std::int64_t created, const std::string& model,
                            std::span<const float> scores, std::uint64_t token_count);

}  // namespace muster
