#pragma once

#include <optional>

#include "base/result.h"
#include "jobs/corpus.h"
#include "jobs/finished_output.h"
#include "jobs/output_conflicts.h"
#include "jobs/output_lock.h"
#include "jobs/run_files.h"

namespace muster {

/// What lies under the names of a run, once they are this run's alone.
struct TakenOutput {
  FoundOutput found = FoundOutput::Nothing;
  std::optional<OutputLock> lock;  // held as long as the run lives
};

/// Takes the names of a run: nothing that is read lies under them, nobody else writes them, and
/// what was found there does not stand in the way. With --restart an output that lacks only its
/// names is given them first.
///
/// Errors: those of check_conflicts, OutputLock::take, check_no_links, check_none_foreign, publish
/// and may_begin.
Result<TakenOutput> take_output(const CorpusOptions& options, const RunSources& sources,
                                const RunFiles& files);

/// Whether `take_output` would take them now, for who has something long to do before it. What lies
/// under the names stays as it is.
///
/// Errors: those of take_output.
Status may_take_output(const CorpusOptions& options, const RunSources& sources,
                       const RunFiles& files);

}  // namespace muster
