#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "dataset/vector_file.h"
#include "jobs/ranking.h"

namespace muster {

/// Of the candidates those `count` that are near the query and far from each other, one after
/// another, each the one with the greatest marginal relevance
///
///   lambda x score(candidate) - (1 - lambda) x max over the picked of cosine(candidate, picked)
///
/// and of equal ones the first candidate. With lambda 1 they are the first `count`; with 0 the
/// first is the first, and each further one the least like those before it.
///
/// candidates: rows with a direction. Errors: those of VectorFile::read_rows. Cost: count x
/// candidates products of two rows. Threads: pure.
/// Source: Carbonell and Goldstein 1998, "The use of MMR, diversity-based reranking for reordering
/// documents and producing summaries", SIGIR.
Result<std::vector<SearchHit>> pick_by_marginal_relevance(const VectorFile& vectors,
                                                          std::span<const SearchHit> candidates,
                                                          double lambda, std::size_t count);

}  // namespace muster
