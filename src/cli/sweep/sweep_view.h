#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/record_table.h"

namespace muster {

/// The records of a sweep for people: the best in one line, then a row for each, with the columns
/// of the keys that are swept and the figures that some record has.
///
/// swept: names in `config` of a record. width: columns of the terminal. Threads: pure.
std::string sweep_text(const std::vector<nlohmann::ordered_json>& records,
                       const std::vector<std::string>& swept, std::size_t width);

/// What is said of a table's points that another build than `build` has measured; empty: there are
/// none. is_remote: a server that runs already is measured, whatever build sends the requests.
/// Threads: pure.
std::string other_builds_text(const RecordTable& table, std::string_view name,
                              std::string_view build, bool is_remote);

}  // namespace muster
