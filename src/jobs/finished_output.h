#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "jobs/embed.h"
#include "jobs/run_output.h"

namespace muster {

/// What a run finds under the names of its files.
enum class FoundOutput : std::uint8_t {
  Nothing,     // or an OUT that stands alone: check_none_foreign looks whose it is
  Begun,       // a journal of which nothing is done, not ahead either: nothing is lost without it
  Unfinished,  // an interrupted run
  Unnamed,     // one whose parts are whole and lack their final names alone
  StrayParts,  // parts, or rows ahead, without a journal
  Finished,    // vectors with their record beside them
};

/// Looks, and changes nothing.
///
/// Errors: those of RunJournal::read, but for an empty journal; those of count_ahead_rows.
Result<FoundOutput> find_output(const RunFiles& files);

/// Records that `--resume` would not compute again: those of the journal's last step, and those
/// with a row ahead.
///
/// Errors: those of RunJournal::read and count_ahead_rows.
Result<std::uint64_t> kept_record_count(const RunFiles& files);

/// Whether an input is standard input, which no later run can read again.
bool reads_stdin(const EmbedOptions& options);

/// Whether a run may begin with what was found.
///
/// `--resume` with standard input only gives a whole output its names.
///
/// Errors: InvalidArgument, naming the flags to choose from.
Status may_begin(FoundOutput found, const RunFiles& files, const EmbedOptions& options);

/// What `--resume` says of a run that is done: gives the parts their final names where these are
/// missing, and checks that model, settings, inputs and files are still those of the record. The
/// inputs are read, but for standard input, and nothing is computed.
///
/// Errors: InvalidArgument, naming what is another now; those of reading.
Result<EmbedReport> confirm_finished(FoundOutput found, const RunFiles& files,
                                     const EmbedOptions& options, const Clock& clock,
                                     const std::function<bool()>& cancelled);

}  // namespace muster
