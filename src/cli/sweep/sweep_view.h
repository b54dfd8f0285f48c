#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace muster {

/// The records of a sweep for people: the best in one line, then a row for each, with the columns
/// of the keys that are swept and the figures that some record has.
///
/// swept: names in `config` of a record. width: columns of the terminal. Threads: pure.
std::string sweep_text(const std::vector<nlohmann::ordered_json>& records,
                       const std::vector<std::string>& swept, std::size_t width);

}  // namespace muster
