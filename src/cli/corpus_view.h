#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/corpus.h"
#include "terminal/progress.h"
#include "terminal/terminal_info.h"

namespace muster {

// What the reports and the bars of all runs over a corpus have in common.

/// A share as "97 %"; "-" where there is nothing to share.
std::string percent_text(double part, double whole);

/// So many a second, as a whole number, below 10 with two digits; "-" where there was no time.
std::string rate_text(std::uint64_t count, double time_seconds);

/// How a run calls what it counts, and where a bad record is explained.
struct CorpusWords {
  std::string texts = "texts";  // of devices and lanes
  std::string_view result = "row";
  std::string_view results = "rows";
  std::string_view bad_entry = "the index says why";    // of one, and
  std::string_view bad_entries = "the index says why";  // of several
  bool has_busy_times = true;                           // devices tell how busy they were
};

/// The table of devices, and below it those that did not work to the end, and why: the others did
/// their work.
std::string describe_devices(const CorpusProgress& progress, const CorpusWords& words,
                             const TerminalInfo& terminal);

/// What happened to records beside being computed; nothing where nothing did.
std::vector<std::string> remarks_of(const CorpusReport& report, const CorpusWords& words);

/// What the bar shows of a running job: a lane for each device, and `texts` and tokens as counts.
/// The share of the work that is done is that of the input's bytes that were read, times that of
/// their tokens that were computed (of their texts, where nobody counts tokens before they are
/// computed).
ProgressReading corpus_reading(const CorpusProgress& progress, const std::string& texts);

}  // namespace muster
