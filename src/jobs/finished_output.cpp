// What stands at the output's name decides what a new command may do: go on, begin, confirm, or
// refuse. A finished output is confirmed by hashing inputs and outputs again, which reads
// everything once but computes nothing. Nothing that a person has made is dropped unless --restart
// says so.

#include "jobs/finished_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dataset/ahead_file.h"
#include "jobs/input_identity.h"
#include "jobs/replies_ahead.h"

namespace muster {
namespace {

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool has_parts(const RunFiles& files) {
  return is_there(files.out_part) || is_there(files.index_part);
}

Error refusal(const RunFiles& files, const std::string& why) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("cannot resume {}: it is finished, and {}: leave --resume out to make "
                           "it anew",
                           files.out.string(), why)};
}

Status check_identity(const RunIdentity& then, const RunFiles& files,
                      const DifferenceFrom& difference_from) {
  const auto changed = MUSTER_TRY(difference_from(then));
  if (changed) return refusal(files, *changed);
  return Done{};
}

// Reads the inputs once more.
Status check_records(const OutputRecord& record, const RunFiles& files,
                     const CorpusOptions& options, const std::function<bool()>& cancelled) {
  const auto reader = MUSTER_TRY(TextReader::open(options.input));
  TextRecord read;
  Hash128 hash;
  std::uint64_t count = 0;
  for (; MUSTER_TRY(reader->next(read)); ++count) {
    if (cancelled()) return Error{ErrorKind::Cancelled, "cancelled"};
    hash_record(hash, content_of(read));
  }
  if (count != record.record_count || hash.hex() != record.records_hash) {
    return refusal(files, "the input has changed since");
  }
  return Done{};
}

Result<std::uint64_t> kept_of(const RunFiles& files, const JournalContent& journal) {
  const auto written = journal.steps.empty() ? 0 : journal.steps.back().record_count;
  const auto count = files.kind == OutputKind::Vectors ? count_ahead_rows : count_ahead_replies;
  const auto ahead = MUSTER_TRY(count(files.ahead, identity_hash(journal.identity), written));
  return written + ahead;
}

}  // namespace

Result<FoundOutput> find_output(const RunFiles& files) {
  const bool has_finished = is_there(files.out) && is_there(files.about);
  if (is_there(files.journal)) {
    const auto journal = RunJournal::read(files.journal);
    if (!journal && journal.error().kind != ErrorKind::NotFound) return journal.error();
    if (journal && journal->is_finished) return FoundOutput::Unnamed;
    if (journal) {
      const auto kept_count = MUSTER_TRY(kept_of(files, *journal));
      if (kept_count > 0) return FoundOutput::Unfinished;
    }
    // A run that kept nothing leaves what stands beside it as it was.
    return has_finished ? FoundOutput::Finished : FoundOutput::Begun;
  }
  if (has_parts(files) || is_there(files.ahead)) return FoundOutput::StrayParts;
  return has_finished ? FoundOutput::Finished : FoundOutput::Nothing;
}

RunIdentity interrupted_identity(const RunFiles& files) {
  auto journal = RunJournal::read(files.journal);
  return journal ? std::move(journal->identity) : RunIdentity();
}

Result<std::uint64_t> kept_record_count(const RunFiles& files) {
  const auto journal = MUSTER_TRY(RunJournal::read(files.journal));
  return kept_of(files, journal);
}

bool reads_stdin(const CorpusOptions& options) {
  const auto& inputs = options.input.inputs;
  return std::find(inputs.begin(), inputs.end(), "-") != inputs.end();
}

Status may_begin(FoundOutput found, const RunFiles& files, const CorpusOptions& options) {
  const auto out = files.out.string();
  if (options.restart) return Done{};
  if (found == FoundOutput::StrayParts) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} has {} file beside it and no journal to go on by: --restart "
                             "drops it and starts anew",
                             out, has_parts(files) ? "a .part" : "an .ahead")};
  }
  if (options.resume) {
    if (reads_stdin(options) && found != FoundOutput::Unnamed) {
      return Error{ErrorKind::InvalidArgument,
                   "standard input cannot be resumed: write it to a file first"};
    }
    return Done{};
  }
  if (found != FoundOutput::Unfinished && found != FoundOutput::Unnamed) return Done{};
  if (found == FoundOutput::Unnamed) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} is whole and lacks only its names: give them with --resume, or "
                             "make it anew with --restart",
                             out)};
  }
  return Error{ErrorKind::InvalidArgument,
               reads_stdin(options)
                   ? fmt::format("{} is there unfinished: --restart drops it and starts "
                                 "anew",
                                 out)
                   : fmt::format("{} is there unfinished: go on with --resume, or drop it "
                                 "and start anew with --restart",
                                 out)};
}

Result<OutputRecord> confirm_finished(FoundOutput found, const RunFiles& files,
                                      const CorpusOptions& options,
                                      const DifferenceFrom& difference_from,
                                      const std::function<bool()>& cancelled) {
  if (found == FoundOutput::Unnamed) {
    const auto journal = MUSTER_TRY(RunJournal::read(files.journal));
    MUSTER_TRY(check_identity(journal.identity, files, difference_from));
    MUSTER_TRY(publish(files));
  }
  auto record = MUSTER_TRY(read_output_record(files.about));
  MUSTER_TRY(check_identity(record.identity, files, difference_from));
  // Standard input is gone: what it held is taken on the record's word.
  if (!reads_stdin(options)) MUSTER_TRY(check_records(record, files, options, cancelled));
  if (const auto checked = check_output(record, files.out); !checked) {
    return refusal(files, checked.error().message);
  }
  discard(files);  // of a run that was killed before it kept anything
  return record;
}

}  // namespace muster
