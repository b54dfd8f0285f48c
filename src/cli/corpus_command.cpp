// What the commands that run over a corpus share: the progress on standard error, and what to say
// when a run ends early. After Ctrl-C the exact command to go on with is printed, but only where
// something was kept.

#include "cli/corpus_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "cli/corpus_view.h"
#include "cli/interrupt.h"
#include "cli/shell_words.h"
#include "jobs/finished_output.h"

namespace muster {
namespace {

// The records whose results are kept, written or ahead of their turn. What an earlier run had
// finished counts, too, where this one was to go on with it.
std::uint64_t kept_by(const RunFiles& files) {
  const auto found = find_output(files);
  if (!found || (*found != FoundOutput::Unfinished && *found != FoundOutput::Unnamed)) return 0;
  const auto count = kept_record_count(files);
  return count ? *count : 0;
}

int say_how_to_resume(const CommandContext& context, const InterruptedRun& run) {
  const auto& inputs = run.inputs;
  if (run.is_stream) {
    std::fputs("muster: stopped; what went to standard output cannot be resumed\n", stderr);
  } else if (std::find(inputs.begin(), inputs.end(), "-") != inputs.end()) {
    std::fputs("muster: stopped; a run that reads standard input cannot be resumed\n", stderr);
  } else if (const auto count = kept_by(run.files); count == 0) {
    fmt::print(stderr, "muster: stopped before a {} was finished; nothing of this run is kept\n",
               run.result);
  } else {
    auto words = context.words;
    std::erase(words, "--restart");
    if (!context.arguments.has("--resume")) words.emplace_back("--resume");
    fmt::print(stderr, "muster: stopped; {} kept, go on with: {}\n",
               count == 1 ? fmt::format("1 {} is", run.kept)
                          : fmt::format("{} {} are", with_thousands(count), run.all_kept),
               join_shell_words(words));
  }
  return 128 + interrupt_signal();
}

}  // namespace

CorpusBar::CorpusBar(const CommandContext& context, std::string texts)
    : is_quiet_(context.arguments.has("--quiet")), texts_(std::move(texts)) {
  bar_.emplace(STDERR_FILENO, context.terminal(STDERR_FILENO), context.clock);
  // Something is seen before the devices are known, which a driver may take seconds to tell.
  // Drawn before the options are read, which is where the driver is asked.
  show("looking for devices");
}

void CorpusBar::show(const std::string& phase) {
  if (is_quiet_ || !bar_) return;
  ProgressReading reading;
  reading.phase = phase;
  bar_->update(std::move(reading));
}

CorpusEvents CorpusBar::events() {
  return {.on_progress =
              [this](const CorpusProgress& progress) {
                if (!is_quiet_) bar_->update(corpus_reading(progress, texts_));
              },
          .on_notice = [this](const std::string& sentence) { bar_->notice(sentence); }};
}

bool is_interrupted() { return interrupt_signal() != 0; }

Result<int> ended_early(const CommandContext& context, const Error& error,
                        const InterruptedRun& run) {
  if (!is_interrupted() || error.kind != ErrorKind::Cancelled) return error;
  return say_how_to_resume(context, run);
}

}  // namespace muster
