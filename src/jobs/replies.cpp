// `muster generate --prompts` as a run over records.

#include "jobs/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dataset/output_record.h"
#include "dataset/run_journal.h"
#include "jobs/corpus_run.h"
#include "jobs/finished_output.h"
#include "jobs/output_conflicts.h"
#include "jobs/output_taking.h"
#include "jobs/reply_work.h"

namespace muster {
namespace {

// Prompts read ahead: enough that workers go on while one long reply keeps those behind it waiting,
// few enough that what waits takes little memory.
constexpr std::size_t kWindowRecords = 4096;

std::optional<DecoderPrecision> precision_in(const RunIdentity& identity) {
  const auto* name = value_in(identity, kPrecisionEntry);
  return name == nullptr ? std::nullopt : parse_decoder_precision(*name);
}

}  // namespace

std::optional<DecoderPrecision> earlier_precision(const RepliesOptions& options) {
  if (!options.resume || options.stream) return std::nullopt;
  const RunFiles files(options.out, OutputKind::Replies);
  const auto found = find_output(files);
  if (!found) return std::nullopt;  // the run says why
  if (*found == FoundOutput::Finished) {
    const auto record = read_output_record(files.about);
    return record ? precision_in(record->identity) : std::nullopt;
  }
  if (*found != FoundOutput::Unfinished && *found != FoundOutput::Unnamed) return std::nullopt;
  return precision_in(interrupted_identity(files));
}

Status check_may_begin(const RepliesOptions& options) {
  MUSTER_TRY(check_run_flags(options));
  if (options.stream) return Done{};
  const RunSources sources{.inputs = options.input.inputs, .model_folder = options.source};
  return may_take_output(options, sources, RunFiles(options.out, OutputKind::Replies));
}

Status check_replies_name(const std::filesystem::path& out) {
  if (out.extension() == ".jsonl") return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: replies are written as .jsonl, a line for each: name the output so",
                           out.string())};
}

Result<RepliesReport> generate_replies(const RepliesOptions& options, const CorpusEvents& events,
                                       const Clock& clock, const std::function<bool()>& cancelled) {
  if (!options.stream) MUSTER_TRY(check_replies_name(options.out));
  const RunFiles files(options.out, OutputKind::Replies);
  ReplyWork work(options, files, clock);
  CorpusForm form{.files = files,
                  .model_files = options.source,
                  .devices = {},
                  .window_records = kWindowRecords,
                  .knows_tokens = false,
                  .text_word = "prompt",
                  .result_word = "reply"};
  for (const auto& device : options.devices) form.devices.push_back(device.name());
  CorpusRun run(options, std::move(form), work, events, clock, cancelled);
  auto outcome = MUSTER_TRY(run.run());
  RepliesReport report;
  static_cast<CorpusReport&>(report) = std::move(outcome.report);
  report.cached_token_count = work.cached_token_count();
  report.precision = parse_decoder_precision(outcome.record.precision).value_or(options.precision);
  report.precision_reason = options.precision_reason;
  report.kv_cache_dtype = options.kv_cache_dtype;
  return report;
}

}  // namespace muster
