#include "jobs/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kLanes = 16;  // sums that do not wait for each other: two AVX-512 registers

struct Products {
  double with_query = 0;
  double with_itself = 0;
};

// A product of two float32 is exact in float64, so fused and separate additions give the same bits,
// and with the lanes and their order fixed every instruction set gives the same sums.
[[gnu::always_inline]] inline Products multiply(const float* row, const float* query,
                                                std::size_t dim) {
  std::array<double, kLanes> with_query{};
  std::array<double, kLanes> with_itself{};
  std::size_t at = 0;
  for (; at + kLanes <= dim; at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = row[at + lane];
      with_query[lane] += value * static_cast<double>(query[at + lane]);
      with_itself[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; at < dim; ++lane, ++at) {
    const double value = row[at];
    with_query[lane] += value * static_cast<double>(query[at]);
    with_itself[lane] += value * value;
  }
  Products sum;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sum.with_query += with_query[lane];
    sum.with_itself += with_itself[lane];
  }
  return sum;
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] Products multiply_avx2(const float* row, const float* query,
                                                   std::size_t dim) {
  return multiply(row, query, dim);
}
#endif

Products multiply_plain(const float* row, const float* query, std::size_t dim) {
  return multiply(row, query, dim);
}

using Multiply = Products (*)(const float*, const float*, std::size_t);

Multiply fastest_multiply() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return multiply_avx2;
  }
#endif
  return multiply_plain;
}

bool is_better(const SearchHit& a, const SearchHit& b) {
  return a.score > b.score || (a.score == b.score && a.row < b.row);
}

// The best so far; a heap whose front is the worst of them.
class BestHits {
 public:
  explicit BestHits(std::size_t count) : count_(count) {}

  void offer(const SearchHit& hit) {
    if (hits_.size() < count_) {
      hits_.push_back(hit);
      std::push_heap(hits_.begin(), hits_.end(), is_better);
    } else if (count_ > 0 && is_better(hit, hits_.front())) {
      std::pop_heap(hits_.begin(), hits_.end(), is_better);
      hits_.back() = hit;
      std::push_heap(hits_.begin(), hits_.end(), is_better);
    }
  }

  std::vector<SearchHit> take() {
    std::sort_heap(hits_.begin(), hits_.end(), is_better);
    return std::move(hits_);
  }

 private:
  std::size_t count_;
  std::vector<SearchHit> hits_;
};

}  // namespace

Result<std::vector<SearchHit>> search_vectors(const VectorFile& vectors,
                                              std::span<const float> query, std::size_t count) {
  if (query.size() != vectors.dim()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the query has {} values and the file's vectors have {}", query.size(),
                             vectors.dim())};
  }
  const Multiply multiply_rows = fastest_multiply();
  const double query_square = multiply_rows(query.data(), query.data(), query.size()).with_itself;
  if (!(query_square > 0) || !std::isfinite(query_square)) {
    return Error{ErrorKind::InvalidArgument, "the query's vector has no direction"};
  }
  BestHits best(count);
  for (std::uint64_t row = 0; row < vectors.row_count(); ++row) {
    const auto products = multiply_rows(vectors.row(row).data(), query.data(), query.size());
    const double score = products.with_query / std::sqrt(products.with_itself * query_square);
    // A row of length zero gives 0 / 0; one with a value that is not finite has no cosine either.
    if (std::isfinite(score)) {
      best.offer({row, score});
    }
  }
  auto hits = best.take();
  for (auto& hit : hits) {
    hit.score = std::clamp(hit.score, -1.0, 1.0);  // rounding may carry it past 1 by the last bit
  }
  return hits;
}

}  // namespace muster
