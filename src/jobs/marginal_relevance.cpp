// Maximal marginal relevance: hits that do not all say the same.

#include "jobs/marginal_relevance.h"

#include <algorithm>
#include <limits>

#include "jobs/vector_products.h"

namespace muster {
namespace {

struct Candidate {
  SearchHit hit;
  double square = 0;                                                 // of the row's length
  double nearest_picked = -std::numeric_limits<double>::infinity();  // the greatest cosine with one
  bool is_picked = false;
};

// Nothing is picked at first, and the maximum over nothing counts as 0.
double marginal_relevance(const Candidate& candidate, double lambda, bool is_first) {
  const double likeness = is_first ? 0 : candidate.nearest_picked;
  return lambda * candidate.hit.score - (1 - lambda) * likeness;
}

}  // namespace

Result<std::vector<SearchHit>> pick_by_marginal_relevance(const VectorFile& vectors,
                                                          std::span<const SearchHit> candidates,
                                                          double lambda, std::size_t count) {
  std::vector<Candidate> all;
  for (const auto& hit : candidates) all.push_back({.hit = hit});
  MUSTER_TRY(vectors.read_rows([&] {
    for (auto& candidate : all) {
      const auto row = vectors.row(candidate.hit.row);
      candidate.square = dot_product(row, row);
    }
  }));
  std::vector<SearchHit> picked;
  while (picked.size() < std::min(count, all.size())) {
    Candidate* best = nullptr;
    double best_value = 0;
    for (auto& candidate : all) {
      if (candidate.is_picked) continue;
      const double value = marginal_relevance(candidate, lambda, picked.empty());
      if (best == nullptr || value > best_value) {
        best = &candidate;
        best_value = value;
      }
    }
    best->is_picked = true;
    picked.push_back(best->hit);
    MUSTER_TRY(vectors.read_rows([&] {
      const auto row = vectors.row(best->hit.row);
      for (auto& candidate : all) {
        if (candidate.is_picked) continue;
        const double product = dot_product(vectors.row(candidate.hit.row), row);
        candidate.nearest_picked =
            std::max(candidate.nearest_picked, cosine_of(product, candidate.square, best->square));
      }
    }));
  }
  return picked;
}

}  // namespace muster
