#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/call_fields.h"
#include "serving/corpus_searches.h"

namespace muster {

/// Hits of one query, and candidates of which they are picked; and hits of a request.
inline constexpr std::uint64_t kHitsMost = 1000;
inline constexpr std::uint64_t kHitsOfARequestMost = 100'000;

/// A body of POST /v1/search.
struct SearchRequest {
  CallOptions options;  // its model is that of the index
  bool names_model = false;
  std::vector<std::string> queries;
  std::string index;   // empty: the only one
  std::string filter;  // empty: none
  std::optional<std::string> prompt_name;
  RankOptions rank;
};

/// Reads `query` or `queries`, `index`, `k` (or `top_k`), `filter`, `min_score`, `mmr` (true, or
/// the lambda), `mmr_candidates`, `prompt_name`, and the fields of `add_call_fields`.
///
/// Errors: 400. Threads: pure.
ApiResult<SearchRequest> parse_search(std::string body, const TextListLimits& limits,
                                      Duration deadline_most);

/// `{"index", "model", "results": [{"query", "hits": [{"row", "score", "id"?, "text",
/// "fields"?}]}], "usage"}`, written hit by hit: each text is read from the index when its turn
/// comes.
///
/// Threads: one at a time.
class SearchAnswer {
 public:
  struct Head {
    std::string index;
    std::string model;
    std::vector<std::string> queries;
    std::uint64_t token_count = 0;
  };

  /// corpus: outlives it. hits: of each query.
  SearchAnswer(const ServedCorpus& corpus, Head head, QueryHits hits);

  /// Bytes that writing it takes at most, about.
  std::uint64_t size_most() const;

  /// Writes about `byte_count` bytes more, whole hits and at least one; true: that was all, or the
  /// index could not be read.
  bool write(std::size_t byte_count);

  /// After `write` has said true; once. Errors: 503 where the index could not be read.
  ApiResult<HttpResponse> take();

 private:
  bool write_hit();

  const ServedCorpus& corpus_;
  Head head_;
  QueryHits hits_;
  std::size_t next_query_ = 0;
  std::size_t next_hit_ = 0;
  bool has_failed_ = false;
  std::string body_;
};

}  // namespace muster
