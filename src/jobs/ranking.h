#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "dataset/vector_file.h"
#include "jobs/field_filter.h"

namespace muster {

struct SearchHit {
  std::uint64_t row = 0;
  double score = 0;  // cosine, -1..1
};

/// Which rows are hits, and in which order.
struct RankOptions {
  std::size_t count = 5;                 // hits for each query
  std::optional<double> score_least;     // hits below it are none
  std::optional<double> mmr_lambda;      // 0..1: marginal_relevance.h; nullopt: by cosine alone
  std::size_t mmr_candidate_count = 25;  // of which `count` are picked; at least `count`
};

/// The hits of a few queries in a file of vectors: exact, one pass over the file, in steps of about
/// a millisecond.
///
/// The nearest rows by cosine come first, equal scores by row. Rows of length zero, or with a value
/// that is not finite, never match. With `mmr_lambda` the order is that of the picks.
///
/// Shapes: each query [dim] float32. Units: a score is a cosine, computed in float64 from float32
/// products. Threads: not thread-safe.
class Ranking {
 public:
  /// Products of two values in a step: about a millisecond where rows come from memory.
  static constexpr std::uint64_t kProductsOfAStep = 1 << 21;

  /// vectors: outlives it. filter: rows that it does not take are no hits; nullptr: all are.
  ///
  /// Errors: InvalidArgument when the dimensions disagree or a query has length zero.
  static Result<Ranking> begin(const VectorFile& vectors, std::vector<std::vector<float>> queries,
                               const RankOptions& options,
                               std::shared_ptr<const RowFilter> filter = nullptr);

  /// True: that was all.
  ///
  /// Errors: those of VectorFile::read_rows; the ranking is of no use after one.
  Result<bool> step();

  /// The hits of each query, after `step` has said true; once.
  std::vector<std::vector<SearchHit>> take() { return std::move(hits_); }

 private:
  struct Query {
    std::vector<float> values;
    double square = 0;  // of its length
  };

  Ranking(const VectorFile& vectors, const RankOptions& options)
      : vectors_(&vectors), options_(options) {}

  void look_at(std::uint64_t row);
  void offer(std::size_t query, const SearchHit& hit);
  Status pick(std::size_t query);

  const VectorFile* vectors_;
  RankOptions options_;
  std::shared_ptr<const RowFilter> filter_;
  std::vector<Query> queries_;
  /// Of each query the best so far: while rows are looked at a heap whose front is the worst.
  std::vector<std::vector<SearchHit>> hits_;
  std::uint64_t next_row_ = 0;
  std::size_t next_query_ = 0;  // whose hits are put in order
};

}  // namespace muster
