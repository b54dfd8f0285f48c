// The beginning of a run's output: checks, lock, and the look at what is there. The order matters:
// what is there is looked at under the lock, so that it cannot change before the run begins.

#include "jobs/output_taking.h"

#include "jobs/output_conflicts.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

Result<RunSources> sources_of(const EmbedOptions& options) {
  RunSources sources{.inputs = options.input.inputs, .model_folder = {}};
  if (!options.server) sources.model_folder = MUSTER_TRY(find_model(options.model));
  return sources;
}

}  // namespace

Result<TakenOutput> take_output(const EmbedOptions& options, const RunFiles& files) {
  TakenOutput taken;
  const auto read = MUSTER_TRY(sources_of(options));
  MUSTER_TRY(check_conflicts(files, read));
  taken.lock.emplace(MUSTER_TRY(OutputLock::take(files.lock, files.out)));
  MUSTER_TRY(check_conflicts(files, read));  // another run may have ended meanwhile
  if (options.restart) {
    MUSTER_TRY(check_no_links(files));
    return taken;
  }
  const auto found = find_output(files);
  // What is finished is only read again.
  const bool is_read_only = options.resume && found && *found == FoundOutput::Finished;
  if (!is_read_only) MUSTER_TRY(check_no_links(files));
  if (!found) return found.error();
  MUSTER_TRY(may_begin(*found, files, options));
  taken.found = *found;
  return taken;
}

}  // namespace muster
