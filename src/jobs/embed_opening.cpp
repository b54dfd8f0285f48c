// How a run begins: what was asked for is checked, the output's names are taken, the backend is
// opened, and the records that an interrupted run has done are read past.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/cpu_time.h"
#include "jobs/embed_run.h"

namespace muster {
namespace {

// Records read ahead, for each 4,096 tokens of a batch: enough that texts of one length are found
// among mixed ones, few enough that their rows take little memory, and little of the disk while
// they wait for their turn.
constexpr std::size_t kWindowRecords = 4096;
constexpr std::size_t kWindowRecordsMax = 64 * 1024;  // however fast the devices are
constexpr std::uint64_t kWindowSize = 64ULL << 20;    // bytes of texts and ids

// One part in so many of a run may go into keeping rows that wait: they are written twice, and on a
// slow disk devices have nothing to do meanwhile.
constexpr int kAheadParts = 20;

std::size_t window_records(const EmbedOptions& options) {
  const std::size_t scale = std::max<std::size_t>(1, options.batch_tokens / 4096);
  return std::min(kWindowRecords * scale, kWindowRecordsMax);
}

}  // namespace

EmbedRun::EmbedRun(const EmbedOptions& options, const EmbedEvents& events, const Clock& clock,
                   const std::function<bool()>& cancelled)
    : options_(options),
      events_(events),
      clock_(clock),
      cancelled_(cancelled),
      files_(options.out),
      window_(window_records(options), kWindowRecordsMax, kWindowSize),
      ahead_share_(kAheadParts),
      begin_(clock.now()),
      cpu_begin_(process_cpu_seconds()),
      loop_cpu_begin_(thread_cpu_seconds()) {
  if (options.server) return;
  for (const auto& device : options.devices) {
    auto& shown = progress_.devices.emplace_back();
    shown.name = device.name();
    shown.state = "starting";
  }
}

Status EmbedRun::prepare() {
  if (options_.stream) {
    MUSTER_TRY(check_stream());
  } else {
    format_ = MUSTER_TRY(vector_format_of(options_.out));
  }
  if (options_.resume && options_.restart) {
    return Error{ErrorKind::InvalidArgument, "--resume and --restart exclude each other"};
  }
  auto input = options_.input;
  input.is_interrupted = cancelled_;
  reader_ = MUSTER_TRY(TextReader::open(std::move(input)));
  progress_.input_size_total = reader_->size_total();
  return Done{};
}

Status EmbedRun::check_stream() const {
  if (options_.resume || options_.restart) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} keeps nothing that {} could find: name a file with -o",
                             options_.stream->name, options_.resume ? "--resume" : "--restart")};
  }
  if (options_.stream->format == StreamFormat::F32 && options_.skip_bad) {
    return Error{ErrorKind::InvalidArgument,
                 "bare numbers cannot say which records --skip-bad left out: write jsonl"};
  }
  return Done{};
}

Result<FoundOutput> EmbedRun::take_names() {
  if (options_.stream) return FoundOutput::Nothing;
  auto taken = MUSTER_TRY(take_output(options_, files_));
  lock_.emplace(*std::move(taken.lock));
  return taken.found;
}

Status EmbedRun::open_backend(FoundOutput found) {
  const auto open = options_.server ? open_remote_backend : open_local_backend;
  // It asks several times a second, which is also an occasion to show that the wait goes on.
  const auto cancelled = [this] {
    report_progress(/*is_last=*/false);
    return cancelled_();
  };
  backend_ = MUSTER_TRY(open(options_, backend_events(), clock_, cancelled));
  identity_ = embed_identity(options_, backend_->model());
  // A journal that is empty or torn, or has no step, speaks of nothing either.
  if (options_.resume && found != FoundOutput::Unfinished) {
    events_.on_notice(fmt::format(
        "nothing of {} is there to go on with: starting from the beginning", files_.out.string()));
  } else if (options_.resume) {
    resumption_ = MUSTER_TRY(find_resumption(files_, format_, identity_));
    first_record_ = resumption_->last.record_count;
  }
  MUSTER_TRY(open_ahead());
  if (resumption_) MUSTER_TRY(skip_done_records());
  return Done{};
}

Status EmbedRun::open_ahead() {
  if (options_.stream || reads_stdin()) return Done{};
  auto run = identity_hash(identity_);
  if (resumption_) {
    ahead_ = MUSTER_TRY(AheadFile::reopen(files_.ahead, std::move(run), first_record_));
  } else {
    ahead_ = std::make_unique<AheadFile>(files_.ahead, std::move(run));
  }
  return Done{};
}

EmbedBackendEvents EmbedRun::backend_events() {
  return {.on_tokens = [this](ItemKey key,
                              const Tokenizer::Encoded& tokens) { on_tokens(key, tokens); },
          .on_row = [this](ItemKey key, std::span<const std::byte> row) { on_row(key, row); },
          .on_item_failed = [this](ItemKey key, const Error& error) { on_item_failed(key, error); },
          .on_notice = [this](const std::string& notice) { events_.on_notice(notice); },
          .on_phase = [this](const std::string& phase) { begin_phase(phase); }};
}

Status EmbedRun::skip_done_records() {
  const auto& last = resumption_->last;
  for (std::uint64_t i = 0; i < last.record_count; ++i) {
    if (cancelled_()) return Error{ErrorKind::Cancelled, "cancelled"};
    if (!MUSTER_TRY(reader_->next(record_))) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("cannot resume {}: the input has become shorter: {} records, {} were done",
                      files_.out.string(), i, last.record_count)};
    }
    hash_record(
        records_hash_,
        {.line = record_.line, .id = record_.id, .text = record_.text, .fields = record_.fields});
    ++progress_.read_count;
    note_id();
  }
  if (last.record_count > 0 && records_hash_.hex() != last.records_hash) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("cannot resume {}: the input has changed within its first {} records",
                             files_.out.string(), last.record_count)};
  }
  progress_.input_size_resumed = reader_->size_consumed();
  progress_.resumed_count = last.row_count;
  progress_.bad_count = resumed_bad_count_ = last.record_count - last.row_count;
  return Done{};
}

}  // namespace muster
