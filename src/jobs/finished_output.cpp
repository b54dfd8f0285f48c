// What stands at the output's name decides what a new command may do: go on, begin, confirm, or
// refuse. A finished output is confirmed by hashing inputs and outputs again, which reads
// everything once but computes nothing. Nothing that a person has made is dropped unless --restart
// says so.

#include "jobs/finished_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dataset/ahead_file.h"
#include "jobs/embed_backend.h"
#include "jobs/embed_identity.h"

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

// Without workers, or of a server.
Result<EmbedModel> model_of(const EmbedOptions& options, const Clock& clock,
                            const std::function<bool()>& cancelled) {
  if (!options.server) return describe_local_model(options);
  const EmbedBackendEvents deaf{.on_tokens = [](ItemKey, const Tokenizer::Encoded&) {},
                                .on_row = [](ItemKey, std::span<const std::byte>) {},
                                .on_item_failed = [](ItemKey, const Error&) {},
                                .on_notice = [](const std::string&) {}};
  const auto backend = MUSTER_TRY(open_remote_backend(options, deaf, clock, cancelled));
  return backend->model();
}

Status check_identity(const RunIdentity& then, const RunFiles& files, const EmbedOptions& options,
                      const EmbedModel& model) {
  const auto now = identity_as_asked(options, embed_identity(options, model));
  const auto changed = identity_difference(identity_as_asked(options, then), now);
  if (changed) return refusal(files, *changed);
  return Done{};
}

// Reads the inputs once more.
Status check_records(const OutputRecord& record, const RunFiles& files, const EmbedOptions& options,
                     const std::function<bool()>& cancelled) {
  const auto reader = MUSTER_TRY(TextReader::open(options.input));
  TextRecord read;
  Hash128 hash;
  std::uint64_t count = 0;
  for (; MUSTER_TRY(reader->next(read)); ++count) {
    if (cancelled()) return Error{ErrorKind::Cancelled, "cancelled"};
    hash_record(hash, {.line = read.line, .id = read.id, .text = read.text, .fields = read.fields});
  }
  if (count != record.record_count || hash.hex() != record.records_hash) {
    return refusal(files, "the input has changed since");
  }
  return Done{};
}

Result<std::uint64_t> kept_of(const RunFiles& files, const JournalContent& journal) {
  const auto written = journal.steps.empty() ? 0 : journal.steps.back().record_count;
  const auto ahead =
      MUSTER_TRY(count_ahead_rows(files.ahead, identity_hash(journal.identity), written));
  return written + ahead;
}

EmbedReport report_of(const OutputRecord& record, const RunFiles& files) {
  EmbedReport report;
  report.was_complete = true;
  report.progress.resumed_count = record.row_count;
  report.progress.read_count = record.record_count;
  report.progress.bad_count = record.record_count - record.row_count;
  report.dim = record.dim;
  report.precision = parse_precision(record.precision).value_or(Precision::Fp32);
  report.precision_reason = "that of the finished run";
  report.equality_class = record.equality_class;
  report.out = files.out;
  report.index = files.index;
  return report;
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

Result<std::uint64_t> kept_record_count(const RunFiles& files) {
  const auto journal = MUSTER_TRY(RunJournal::read(files.journal));
  return kept_of(files, journal);
}

bool reads_stdin(const EmbedOptions& options) {
  const auto& inputs = options.input.inputs;
  return std::find(inputs.begin(), inputs.end(), "-") != inputs.end();
}

Status may_begin(FoundOutput found, const RunFiles& files, const EmbedOptions& options) {
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

Result<EmbedReport> confirm_finished(FoundOutput found, const RunFiles& files,
                                     const EmbedOptions& options, const Clock& clock,
                                     const std::function<bool()>& cancelled) {
  const auto model = MUSTER_TRY(model_of(options, clock, cancelled));
  if (found == FoundOutput::Unnamed) {
    const auto journal = MUSTER_TRY(RunJournal::read(files.journal));
    MUSTER_TRY(check_identity(journal.identity, files, options, model));
    MUSTER_TRY(publish(files));
  }
  const auto record = MUSTER_TRY(read_output_record(files.about));
  MUSTER_TRY(check_identity(record.identity, files, options, model));
  // Standard input is gone: what it held is taken on the record's word.
  if (!reads_stdin(options)) MUSTER_TRY(check_records(record, files, options, cancelled));
  if (const auto checked = check_output(record, files.out); !checked) {
    return refusal(files, checked.error().message);
  }
  discard(files);  // of a run that was killed before it kept anything
  return report_of(record, files);
}

}  // namespace muster
