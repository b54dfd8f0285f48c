#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "dataset/vector_file.h"

namespace muster {

struct SearchHit {
  std::uint64_t row = 0;
  double score = 0;  // cosine, -1..1
};

/// The `count` rows nearest to `query` by cosine, best first, equal scores by row: exact, one pass
/// over the file. Rows of length zero, or with a value that is not finite, never match.
///
/// Shapes: query [dim] float32. Units: score is a cosine, computed in float64 from float32
/// products. Errors: InvalidArgument when the dimensions disagree or the query has length zero.
Result<std::vector<SearchHit>> search_vectors(const VectorFile& vectors,
                                              std::span<const float> query, std::size_t count);

}  // namespace muster
