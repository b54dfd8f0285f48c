// How a run begins: what was asked for is checked, the output's names are taken, the backend is
// opened, and the records that an interrupted run has done are read past.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/cpu_time.h"
#include "jobs/corpus_run.h"
#include "jobs/input_identity.h"

namespace muster {
namespace {

constexpr std::size_t kWindowRecordsMax = 64 * 1024;  // however fast the devices are
constexpr std::uint64_t kWindowSize = 64ULL << 20;    // bytes of texts, ids and replies

// One part in so many of a run may go into keeping results that wait: they are written twice, and
// on a slow disk devices have nothing to do meanwhile.
constexpr int kAheadParts = 20;

Status check_stream(const CorpusOptions& options) {
  if (options.resume || options.restart) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} keeps nothing that {} could find: name a file with -o",
                             options.stream->name, options.resume ? "--resume" : "--restart")};
  }
  if (options.stream->format == StreamFormat::F32 && options.skip_bad) {
    return Error{ErrorKind::InvalidArgument,
                 "bare numbers cannot say which records --skip-bad left out: write jsonl"};
  }
  return Done{};
}

}  // namespace

Status check_run_flags(const CorpusOptions& options) {
  if (options.stream) MUSTER_TRY(check_stream(options));
  if (!options.resume || !options.restart) return Done{};
  return Error{ErrorKind::InvalidArgument, "--resume and --restart exclude each other"};
}

CorpusRun::CorpusRun(const CorpusOptions& options, CorpusForm form, CorpusWork& work,
                     const CorpusEvents& events, const Clock& clock,
                     const std::function<bool()>& cancelled)
    : options_(options),
      form_(std::move(form)),
      work_(work),
      events_(events),
      clock_(clock),
      cancelled_(cancelled),
      window_(std::min(form_.window_records, kWindowRecordsMax), kWindowRecordsMax, kWindowSize),
      ahead_share_(kAheadParts),
      begin_(clock.now()),
      cpu_begin_(process_cpu_seconds()),
      loop_cpu_begin_(thread_cpu_seconds()) {
  for (const auto& device : form_.devices) {
    auto& shown = progress_.devices.emplace_back();
    shown.name = device;
    shown.state = "starting";
  }
}

Status CorpusRun::prepare() {
  MUSTER_TRY(check_run_flags(options_));
  auto input = options_.input;
  input.is_interrupted = cancelled_;
  reader_ = MUSTER_TRY(TextReader::open(std::move(input)));
  progress_.input_size_total = reader_->size_total();
  return Done{};
}

Result<FoundOutput> CorpusRun::take_names() {
  if (options_.stream) return FoundOutput::Nothing;
  const RunSources sources{.inputs = options_.input.inputs, .model_folder = form_.model_files};
  auto taken = MUSTER_TRY(take_output(options_, sources, form_.files));
  lock_.emplace(*std::move(taken.lock));
  return taken.found;
}

Status CorpusRun::open_backend(FoundOutput found) {
  // It asks several times a second, which is also an occasion to show that the wait goes on.
  const auto cancelled = [this] {
    report_progress(/*is_last=*/false);
    return cancelled_();
  };
  backend_ = MUSTER_TRY(work_.open(sink(), cancelled));
  // A journal that is empty or torn, or has no step, speaks of nothing either.
  if (options_.resume && found != FoundOutput::Unfinished) {
    events_.on_notice(
        fmt::format("nothing of {} is there to go on with: starting from the beginning",
                    form_.files.out.string()));
  } else if (options_.resume) {
    resumption_ = MUSTER_TRY(find_resumption(form_.files, form_.header_size, work_.identity()));
    first_record_ = resumption_->last.record_count;
  }
  MUSTER_TRY(open_ahead());
  if (resumption_) MUSTER_TRY(skip_done_records());
  source_ = std::make_unique<RecordSource>(std::move(reader_), options_.input.inputs);
  return Done{};
}

Status CorpusRun::open_ahead() {
  if (options_.stream || reads_stdin()) return Done{};
  ahead_ = MUSTER_TRY(work_.open_ahead(resumption_ ? std::optional(first_record_) : std::nullopt));
  return Done{};
}

CorpusSink CorpusRun::sink() {
  return {
      .on_tokens = [this](ItemKey key,
                          const Tokenizer::Encoded& tokens) { on_tokens(key, tokens); },
      .on_result = [this](ItemKey key, RecordResult result) { on_result(key, std::move(result)); },
      .on_row = [this](ItemKey key, std::span<const std::byte> bytes) { on_row(key, bytes); },
      .on_failed = [this](ItemKey key, const Error& error) { on_failed(key, error); },
      .on_notice = [this](const std::string& notice) { events_.on_notice(notice); },
      .on_phase = [this](const std::string& phase) { begin_phase(phase); }};
}

Status CorpusRun::skip_done_records() {
  const auto& last = resumption_->last;
  const auto out = form_.files.out.string();
  TextRecord record;  // whose buffers are used again
  IndexEntry entry;
  for (std::uint64_t i = 0; i < last.record_count; ++i) {
    if (cancelled_()) return Error{ErrorKind::Cancelled, "cancelled"};
    if (!MUSTER_TRY(reader_->next(record))) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("cannot resume {}: the input has become shorter: {} records, {} were done",
                      out, i, last.record_count)};
    }
    hash_record(records_hash_, content_of(record));
    ++progress_.read_count;
    entry.id.swap(record.id);
    entry.input = options_.input.inputs[record.input_index];
    entry.line = record.line;
    note_id(entry);
  }
  if (last.record_count > 0 && records_hash_.hex() != last.records_hash) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("cannot resume {}: the input has changed within its first {} records",
                             out, last.record_count)};
  }
  progress_.input_size_resumed = reader_->size_consumed();
  progress_.resumed_count = last.row_count;
  progress_.bad_count = resumed_bad_count_ = last.record_count - last.row_count;
  return Done{};
}

}  // namespace muster
