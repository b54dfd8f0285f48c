// Exact search: each row is read once for all queries, and the best so far of each are in a heap.

#include "jobs/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "jobs/marginal_relevance.h"
#include "jobs/vector_products.h"

namespace muster {
namespace {

bool is_better(const SearchHit& a, const SearchHit& b) {
  return a.score > b.score || (a.score == b.score && a.row < b.row);
}

}  // namespace

Result<Ranking> Ranking::begin(const VectorFile& vectors, std::vector<std::vector<float>> queries,
                               const RankOptions& options,
                               std::shared_ptr<const RowFilter> filter) {
  Ranking ranking(vectors, options);
  ranking.filter_ = std::move(filter);
  for (auto& query : queries) {
    if (query.size() != vectors.dim()) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("the query has {} values and the file's vectors have {}",
                               query.size(), vectors.dim())};
    }
    const double square = dot_product(query, query);
    if (!(square > 0) || !std::isfinite(square)) {
      return Error{ErrorKind::InvalidArgument, "the query's vector has no direction"};
    }
    ranking.queries_.push_back({.values = std::move(query), .square = square});
  }
  ranking.hits_.resize(ranking.queries_.size());
  return ranking;
}

Result<bool> Ranking::step() {
  const std::uint64_t of_a_row = std::max<std::uint64_t>(1, queries_.size() * vectors_->dim());
  const std::uint64_t row_count = std::max<std::uint64_t>(1, kProductsOfAStep / of_a_row);
  const auto end = std::min(vectors_->row_count(), next_row_ + row_count);
  if (next_row_ < end && !queries_.empty()) {
    // Rows are read by products alone, in which nothing is half done.
    MUSTER_TRY(vectors_->read_rows([&] {
      for (; next_row_ < end; ++next_row_) {
        if (!filter_ || filter_->takes(next_row_)) look_at(next_row_);
      }
    }));
    return false;
  }
  if (next_query_ < queries_.size()) MUSTER_TRY(pick(next_query_++));
  return next_query_ == queries_.size();
}

void Ranking::look_at(std::uint64_t row) {
  const auto values = vectors_->row(row);
  const auto products = multiply_row(values, queries_.front().values);
  for (std::size_t i = 0; i < queries_.size(); ++i) {
    const double product = i == 0 ? products.with_query : dot_product(values, queries_[i].values);
    const double score = cosine_of(product, products.with_itself, queries_[i].square);
    // A row of length zero gives 0 / 0; one with a value that is not finite has no cosine either.
    if (std::isfinite(score)) offer(i, {row, score});
  }
}

void Ranking::offer(std::size_t query, const SearchHit& hit) {
  if (options_.score_least && hit.score < *options_.score_least) return;
  const auto count =
      options_.mmr_lambda ? std::max(options_.count, options_.mmr_candidate_count) : options_.count;
  auto& hits = hits_[query];
  if (hits.size() < count) {
    hits.push_back(hit);
    std::push_heap(hits.begin(), hits.end(), is_better);
  } else if (count > 0 && is_better(hit, hits.front())) {
    std::pop_heap(hits.begin(), hits.end(), is_better);
    hits.back() = hit;
    std::push_heap(hits.begin(), hits.end(), is_better);
  }
}

Status Ranking::pick(std::size_t query) {
  auto& hits = hits_[query];
  std::sort_heap(hits.begin(), hits.end(), is_better);
  if (!options_.mmr_lambda) return Done{};
  hits =
      MUSTER_TRY(pick_by_marginal_relevance(*vectors_, hits, *options_.mmr_lambda, options_.count));
  return Done{};
}

}  // namespace muster
