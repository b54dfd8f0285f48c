// The beginning of a run's output: checks, lock, and the look at what is there. The order matters:
// what is there is looked at under the lock, so that it cannot change before the run begins.

#include "jobs/output_taking.h"

#include "jobs/foreign_files.h"

namespace muster {
namespace {

// The journal that vouches for the names that are given already goes with a new run, which may end
// early. Where a part is gone there is nothing to complete, and the new run makes all.
Status complete_names(const RunFiles& files) {
  const auto published = publish(files);
  if (!published && published.error().kind != ErrorKind::Corrupt) return published;
  return Done{};
}

}  // namespace

Result<TakenOutput> take_output(const CorpusOptions& options, const RunSources& sources,
                                const RunFiles& files) {
  TakenOutput taken;
  MUSTER_TRY(check_conflicts(files, sources));
  taken.lock.emplace(MUSTER_TRY(OutputLock::take(files.lock, files.out)));
  MUSTER_TRY(check_conflicts(files, sources));  // another run may have ended meanwhile
  const auto found = find_output(files);
  // What is finished is only read again.
  const bool is_read_only = options.resume && found && *found == FoundOutput::Finished;
  if (!is_read_only) MUSTER_TRY(check_no_links(files));
  MUSTER_TRY(check_none_foreign(files));
  if (options.restart) {
    if (found && *found == FoundOutput::Unnamed) MUSTER_TRY(complete_names(files));
    return taken;  // what an interrupted run has left is dropped, whatever that is
  }
  if (!found) return found.error();
  MUSTER_TRY(may_begin(*found, files, options));
  taken.found = *found;
  return taken;
}

}  // namespace muster
