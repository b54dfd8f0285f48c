#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "jobs/corpus.h"
#include "jobs/run_files.h"
#include "terminal/progress_bar.h"

namespace muster {

/// The bar of a run over a corpus on standard error, from before its devices are looked for.
///
/// Threads: not thread-safe; owned by the command.
class CorpusBar {
 public:
  /// texts: as corpus_reading. With --quiet there are notices alone: a worker's death is worth a
  /// line even when nobody wants a bar.
  CorpusBar(const CommandContext& context, std::string texts);

  /// What the run tells, while this lives.
  CorpusEvents events();

  /// What is done before the run begins, in the place of "looking for devices".
  void show(const std::string& phase);

  /// Takes it off the terminal, before a report or an error is printed below it.
  void clear() { bar_.reset(); }

 private:
  const bool is_quiet_;
  const std::string texts_;
  std::optional<ProgressBar> bar_;
};

/// Whether a signal has asked the run to end.
bool is_interrupted();

/// What to say when a run was interrupted.
struct InterruptedRun {
  RunFiles files;
  std::vector<std::string> inputs;
  bool is_stream = false;
  std::string result = "row";  // what was not finished, and
  std::string kept = "text";   // what is kept: one, and
  std::string all_kept = "texts";
};

/// Of a run that ended early: after Ctrl-C the exact words to go on with, where something was kept,
/// and its exit code; else the error.
Result<int> ended_early(const CommandContext& context, const Error& error,
                        const InterruptedRun& run);

}  // namespace muster
