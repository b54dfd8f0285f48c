#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "dataset/output_record.h"
#include "dataset/run_journal.h"
#include "jobs/corpus.h"
#include "jobs/run_files.h"

namespace muster {

/// What a run finds under the names of its files.
enum class FoundOutput : std::uint8_t {
  Nothing,     // or an OUT that stands alone: check_none_foreign looks whose it is
  Begun,       // a journal of which nothing is done, not ahead either: nothing is lost without it
  Unfinished,  // an interrupted run
  Unnamed,     // one whose parts are whole and lack their final names alone
  StrayParts,  // parts, or results ahead, without a journal
  Finished,    // OUT with its record beside it
};

/// Looks, and changes nothing.
///
/// Errors: those of RunJournal::read, but for an empty journal; those of reading what is ahead.
Result<FoundOutput> find_output(const RunFiles& files);

/// The identity of the run that `--resume` goes on with; empty where its journal cannot be read.
RunIdentity interrupted_identity(const RunFiles& files);

/// Records that `--resume` would not compute again: those of the journal's last step, and those
/// with a result ahead.
///
/// Errors: those of RunJournal::read and of reading what is ahead.
Result<std::uint64_t> kept_record_count(const RunFiles& files);

/// Whether an input is standard input, which no later run can read again.
bool reads_stdin(const CorpusOptions& options);

/// Whether a run may begin with what was found.
///
/// `--resume` with standard input only gives a whole output its names.
///
/// Errors: InvalidArgument, naming the flags to choose from.
Status may_begin(FoundOutput found, const RunFiles& files, const CorpusOptions& options);

/// Of the identity of a run that is done, what another is now, as far as that is known without a
/// device; nullopt where nothing is.
using DifferenceFrom = std::function<Result<std::optional<std::string>>(const RunIdentity& then)>;

/// What `--resume` says of a run that is done: gives the parts their final names where these are
/// missing, and checks that model, settings, inputs and files are still those of the record. The
/// inputs are read, but for standard input, and nothing is computed.
///
/// Errors: InvalidArgument, naming what is another now; those of reading.
Result<OutputRecord> confirm_finished(FoundOutput found, const RunFiles& files,
                                      const CorpusOptions& options,
                                      const DifferenceFrom& difference_from,
                                      const std::function<bool()>& cancelled);

}  // namespace muster
