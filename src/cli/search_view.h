#pragma once

#include <map>
#include <string>
#include <vector>

#include "dataset/vector_file.h"
#include "jobs/ranking.h"
#include "terminal/terminal_info.h"

namespace muster {

/// The index lines of hits, by row.
using HitEntries = std::map<std::uint64_t, IndexEntry>;

/// A question and its hits as a table; with their kept fields where one has any.
std::string describe_hits(const std::string& query, const std::vector<SearchHit>& hits,
                          const HitEntries& entries, const TerminalInfo& terminal);

/// `{"query", "hits": [{"row", "score", "id"?, "input", "line", "fields"?, "text"}]}` and a line
/// end.
std::string hits_json(const std::string& query, const std::vector<SearchHit>& hits,
                      const HitEntries& entries);

}  // namespace muster
