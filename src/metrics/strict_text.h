#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// One line of the exposition format, read back.
struct ReadSeries {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // values unescaped
  double value = 0;
};

struct StrictText {
  std::vector<ReadSeries> series;
  std::string fault;  // the first, with its line; empty: none
};

/// Reads what a scrape gave, for tests, and finds fault with more than Prometheus does: a family
/// must be in one piece with HELP and TYPE before it, no series may come twice, every value must be
/// finite and every label value UTF-8.
///
/// Source: Prometheus, text exposition format 0.0.4.
StrictText read_strictly(std::string_view text);

}  // namespace muster
