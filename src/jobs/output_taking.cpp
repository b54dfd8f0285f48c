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

Result<OutputLock> lock_output(const RunSources& sources, const RunFiles& files) {
  MUSTER_TRY(check_conflicts(files, sources));
  auto lock = MUSTER_TRY(OutputLock::take(files.lock, files.out));
  MUSTER_TRY(check_conflicts(files, sources));  // another run may have ended meanwhile
  return lock;
}

// What an interrupted run has left is dropped by --restart, whatever that is.
Status check_found(const Result<FoundOutput>& found, const CorpusOptions& options,
                   const RunFiles& files) {
  // What is finished is only read again.
  const bool is_read_only = options.resume && found && *found == FoundOutput::Finished;
  if (!is_read_only) MUSTER_TRY(check_no_links(files));
  MUSTER_TRY(check_none_foreign(files));
  if (options.restart) return Done{};
  if (!found) return found.error();
  return may_begin(*found, files, options);
}

}  // namespace

Result<TakenOutput> take_output(const CorpusOptions& options, const RunSources& sources,
                                const RunFiles& files) {
  TakenOutput taken;
  taken.lock.emplace(MUSTER_TRY(lock_output(sources, files)));
  const auto found = find_output(files);
  MUSTER_TRY(check_found(found, options, files));
  if (!options.restart) {
    taken.found = *found;
  } else if (found && *found == FoundOutput::Unnamed) {
    MUSTER_TRY(complete_names(files));
  }
  return taken;
}

Status may_take_output(const CorpusOptions& options, const RunSources& sources,
                       const RunFiles& files) {
  const auto lock = MUSTER_TRY(lock_output(sources, files));
  return check_found(find_output(files), options, files);
}

}  // namespace muster
