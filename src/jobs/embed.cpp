// One run: read some records, step the backend, write what is done; until the input is at its end.
// Rows come back in any order and are written in input order, so memory is bounded by the window
// and not by the corpus, and a journal that counts records says exactly where to go on. Everything
// happens on one thread; callbacks of the backend come within its step.

#include "jobs/embed.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "jobs/duplicate_ids.h"
#include "jobs/embed_backend.h"
#include "jobs/embed_identity.h"
#include "jobs/output_taking.h"
#include "jobs/record_window.h"
#include "jobs/stream_output.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

// Records read ahead, for each 4,096 tokens of a batch: enough that texts of one length are found
// among mixed ones, few enough that what a crash can cost stays near a second of work (rows leave
// in input order).
constexpr std::size_t kWindowRecords = 4096;
constexpr std::size_t kWindowRecordsMax = 64 * 1024;
constexpr std::uint64_t kWindowSize = 64ULL << 20;  // bytes of texts and ids

constexpr int kRecordsPerTurn = 256;  // read between two looks at the workers: about a millisecond
constexpr Duration kCommitInterval = std::chrono::seconds(1);  // what a crash can cost
constexpr Duration kProgressInterval = std::chrono::milliseconds(100);
constexpr Duration kIdleWait = std::chrono::milliseconds(100);  // how soon Ctrl-C is seen

double cpu_seconds_of_this_process() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto time_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return time_of(usage.ru_utime) + time_of(usage.ru_stime);
}

std::size_t window_records(const EmbedOptions& options) {
  const std::size_t scale = std::max<std::size_t>(1, options.batch_tokens / 4096);
  return std::min(kWindowRecords * scale, kWindowRecordsMax);
}

/// Adds the time of a scope to one of the parts of the run.
class Stopwatch {
 public:
  Stopwatch(const Clock& clock, double& total)
      : clock_(clock), total_(total), begin_(clock.now()) {}
  ~Stopwatch() { total_ += seconds(clock_.now() - begin_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  const Clock& clock_;
  double& total_;
  const TimePoint begin_;
};

/// One call of `embed_corpus`.
class EmbedRun {
 public:
  EmbedRun(const EmbedOptions& options, const EmbedEvents& events, const Clock& clock,
           const std::function<bool()>& cancelled)
      : options_(options),
        events_(events),
        clock_(clock),
        cancelled_(cancelled),
        files_(options.out),
        window_(window_records(options), kWindowSize),
        begin_(clock.now()),
        cpu_begin_(cpu_seconds_of_this_process()) {
    if (options.server) return;
    for (const auto& device : options.devices) {
      auto& shown = progress_.devices.emplace_back();
      shown.name = device.name();
      shown.state = "starting";
    }
  }

  Result<EmbedReport> run();

 private:
  Status prepare();
  Result<FoundOutput> take_names();
  Status open_backend(FoundOutput found);
  EmbedBackendEvents backend_events();
  Status skip_done_records();
  Status pump();
  Status read_turn();
  Status check_has_texts() const;
  Status take_record();
  Status open_output();
  Status write_done();
  Status commit();
  Status finish();
  Status check_model();
  Status check_stream() const;
  Error stopped(const Error& error);
  Error stopped_stream(const Error& error);
  std::string out_name() const {
    return options_.stream ? options_.stream->name : files_.out.string();
  }
  bool reads_stdin() const { return muster::reads_stdin(options_); }
  void note_id();
  void tell_of_fields_not_met() const;
  void on_tokens(ItemKey key, const Tokenizer::Encoded& tokens);
  void on_row(ItemKey key, std::span<const std::byte> row);
  void on_item_failed(ItemKey key, const Error& error);
  void begin_phase(const std::string& phase);
  void report_progress(bool is_last);
  EmbedReport report();
  OutputRecord record() const;
  std::string place_of(const IndexEntry& entry) const {
    return place_name(entry.input, entry.line);
  }

  const EmbedOptions& options_;
  const EmbedEvents& events_;
  const Clock& clock_;
  const std::function<bool()>& cancelled_;
  const RunFiles files_;

  VectorFormat format_ = VectorFormat::Npy;
  std::unique_ptr<TextReader> reader_;
  std::unique_ptr<EmbedBackend> backend_;
  EmbedBackendStatus status_;  // of the last look
  RunIdentity identity_;
  std::optional<OutputLock> lock_;
  std::optional<RunResumption> resumption_;
  std::unique_ptr<EmbedOutput> output_;
  RecordWindow window_;

  TextRecord record_;     // the one just read; its buffers are used again
  Hash128 records_hash_;  // over all records that have been written
  DuplicateIds ids_;
  std::string first_duplicate_;
  bool is_at_end_ = false;
  bool are_rows_doubtful_ = false;  // nobody can tell which model they are of
  std::optional<Error> fatal_;      // set by a callback, looked at after the step
  EmbedProgress progress_;
  TimeSplit time_;
  const TimePoint begin_;
  const double cpu_begin_;
  std::optional<TimePoint> first_row_at_;
  TimePoint last_commit_{};
  TimePoint last_progress_{};
  std::optional<double> worker_cpu_seconds_;
};

Error not_finite(Precision precision) {
  std::string message = "the vector of this text is not finite (NaN or infinity)";
  if (precision != Precision::Fp32) {
    message += fmt::format(" in {}; --precision fp32 has more room", precision_name(precision));
  }
  return Error{ErrorKind::InvalidArgument, message};
}

Result<EmbedReport> EmbedRun::run() {
  begin_phase("reading the model");
  MUSTER_TRY(prepare());
  const auto found = MUSTER_TRY(take_names());
  if (found == FoundOutput::Unnamed && reads_stdin()) {
    events_.on_notice(fmt::format("{} lacks only its names: standard input is not read again",
                                  files_.out.string()));
  }
  if (options_.resume && (found == FoundOutput::Unnamed || found == FoundOutput::Finished)) {
    auto confirmed = MUSTER_TRY(confirm_finished(found, files_, options_, clock_, cancelled_));
    confirmed.total_seconds = seconds(clock_.now() - begin_);
    return confirmed;
  }
  MUSTER_TRY(open_backend(found));
  auto done = pump();
  if (done) done = finish();
  if (!done) return stopped(done.error());
  return report();
}

Result<FoundOutput> EmbedRun::take_names() {
  if (options_.stream) return FoundOutput::Nothing;
  auto taken = MUSTER_TRY(take_output(options_, files_));
  lock_.emplace(*std::move(taken.lock));
  return taken.found;
}

// What is done stays for --resume, where it can be resumed, is sound and is anything; an error of
// keeping it would only hide the first one.
Error EmbedRun::stopped(const Error& error) {
  if (!output_) return error;
  if (options_.stream) return stopped_stream(error);
  if (output_->is_finished()) {
    return Error{error.kind, fmt::format("{}; all records are done and only names are missing: "
                                         "--resume gives them",
                                         error.message)};
  }
  if (!are_rows_doubtful_) (void)commit();
  if (are_rows_doubtful_ || output_->durable_record_count() == 0 || reads_stdin()) {
    output_.reset();
    discard(files_);
    return error;
  }
  const auto count = output_->durable_record_count();
  // A record that is wrong would end it again; how to go on after Ctrl-C the caller knows better.
  if (error.kind == ErrorKind::Cancelled || error.kind == ErrorKind::InvalidArgument) return error;
  return Error{error.kind,
               fmt::format("{}; {} done: go on with --resume", error.message,
                           count == 1 ? "1 record is" : with_thousands(count) + " records are")};
}

// What has been written is with the reader.
Error EmbedRun::stopped_stream(const Error& error) {
  (void)commit();
  const auto count = progress_.text_count;
  return Error{error.kind,
               fmt::format("{}; {} written before that", error.message,
                           count == 1 ? "1 row was" : with_thousands(count) + " rows were")};
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
  reader_ = MUSTER_TRY(TextReader::open(options_.input));
  progress_.input_size_total = reader_->size_total();
  return Done{};
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
    MUSTER_TRY(skip_done_records());
  }
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
  progress_.bad_count = last.record_count - last.row_count;
  return Done{};
}

Status EmbedRun::pump() {
  while (!is_at_end_ || !window_.is_empty()) {
    if (cancelled_()) return Error{ErrorKind::Cancelled, "cancelled"};
    const bool can_read = !is_at_end_ && window_.has_room();
    if (can_read) MUSTER_TRY(read_turn());
    {
      const Stopwatch watch(clock_, time_.wait);
      MUSTER_TRY(backend_->step(can_read ? Duration{0} : kIdleWait));
    }
    if (fatal_) return *fatal_;
    MUSTER_TRY(open_output());
    MUSTER_TRY(write_done());
    report_progress(/*is_last=*/false);
  }
  return Done{};
}

Status EmbedRun::read_turn() {
  for (int i = 0; i < kRecordsPerTurn && window_.has_room(); ++i) {
    {
      const Stopwatch watch(clock_, time_.read);
      is_at_end_ = !MUSTER_TRY(reader_->next(record_));
    }
    if (is_at_end_) return check_has_texts();
    MUSTER_TRY(take_record());
  }
  return Done{};
}

// A program in front of a pipe that went wrong writes nothing: that is no reason to replace
// vectors.
Status EmbedRun::check_has_texts() const {
  std::error_code ignored;
  const bool is_in_the_way = !options_.stream && std::filesystem::exists(files_.out, ignored);
  if (progress_.read_count > 0 || !is_in_the_way) return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("there is no text in the input, so {} is left as it is: remove it first "
                           "if it is to have no rows",
                           files_.out.string())};
}

// Whoever gives ids means them to be different; it is no error that they are not.
void EmbedRun::note_id() {
  if (record_.id.empty() || !ids_.add(record_.id)) return;
  if (progress_.duplicate_id_count++ > 0) return;
  first_duplicate_ = place_name(options_.input.inputs[record_.input_index], record_.line);
}

// A name with a slip in it would else keep nothing, and say so only when a search asks for it.
void EmbedRun::tell_of_fields_not_met() const {
  for (const auto& sentence : reader_->fields_not_met()) {
    events_.on_notice("no record has a field of --keep: " + sentence);
  }
}

Status EmbedRun::take_record() {
  ++progress_.read_count;
  note_id();
  WindowRecord taken;
  taken.entry.input = options_.input.inputs[record_.input_index];
  taken.entry.line = record_.line;
  taken.entry.id = record_.id;
  taken.entry.fields = record_.fields;
  taken.input_position = reader_->size_consumed();
  if (record_.fault) {
    if (!options_.skip_bad) return stopping_fault(record_);
    taken.entry.reason = record_.fault->message;
    taken.is_done = true;
    window_.push(std::move(taken));
    return Done{};
  }
  const auto key = window_.next_key();
  {
    const Stopwatch watch(clock_, time_.tokenize);
    const auto tokens = backend_->submit(key, record_.text).value_or(Tokenizer::Encoded{});
    taken.entry.token_count = tokens.token_count;
    taken.entry.is_truncated = tokens.is_truncated;
    progress_.read_token_count += tokens.token_count;
  }
  taken.entry.text = record_.text;
  MUSTER_CHECK(window_.push(std::move(taken)) == key);
  return Done{};
}

void EmbedRun::on_tokens(ItemKey key, const Tokenizer::Encoded& tokens) {
  auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  record->entry.token_count = tokens.token_count;
  record->entry.is_truncated = tokens.is_truncated;
}

void EmbedRun::on_row(ItemKey key, std::span<const std::byte> row) {
  auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  record->row.resize(row.size() / sizeof(float));
  std::memcpy(record->row.data(), row.data(), row.size());
  if (!first_row_at_) first_row_at_ = clock_.now();
  if (!is_all_finite(record->row)) {
    record->row.clear();
    return on_item_failed(key, not_finite(backend_->model().precision));
  }
  record->is_done = true;
}

void EmbedRun::on_item_failed(ItemKey key, const Error& error) {
  auto* record = window_.find(key);
  MUSTER_CHECK(record != nullptr && !record->is_done);
  const auto message = fmt::format("{}: {}", place_of(record->entry), error.message);
  if (!options_.skip_bad) {
    fatal_ = Error{error.kind, with_skip_bad_hint(message)};
    return;
  }
  record->entry.reason = message;
  record->is_done = true;
}

Status EmbedRun::open_output() {
  if (output_) return Done{};
  const auto dim = backend_->status().dim;
  if (dim == 0) return Done{};
  last_commit_ = clock_.now();
  if (options_.stream) {
    output_ = std::make_unique<StreamOutput>(*options_.stream);
    return Done{};
  }
  const RowShape shape{.format = format_, .dim = dim, .has_objects = writes_objects(options_)};
  output_ = MUSTER_TRY(
      RunOutput::open(files_, shape, identity_, std::exchange(resumption_, std::nullopt)));
  return Done{};
}

Status EmbedRun::write_done() {
  const Stopwatch watch(clock_, time_.write);
  // A bad record is done before any worker has said how long a row is.
  if (!output_) return Done{};
  while (auto* record = window_.front_if_done()) {
    hash_record(records_hash_, {.line = record->entry.line,
                                .id = record->entry.id,
                                .text = record->entry.text,
                                .fields = record->entry.fields});
    MUSTER_TRY(output_->append(record->entry, record->row));
    if (record->entry.row) {
      ++progress_.text_count;
      progress_.token_count += record->entry.token_count;
      progress_.truncated_count += record->entry.is_truncated ? 1 : 0;
    } else {
      ++progress_.bad_count;
    }
    progress_.input_size_consumed = record->input_position;
    window_.pop_front();
  }
  if (clock_.now() - last_commit_ >= kCommitInterval) return commit();
  return Done{};
}

// The hash of the records goes with the step, so that a resumed run can tell a changed input.
Status EmbedRun::commit() {
  last_commit_ = clock_.now();
  return output_->commit(records_hash_.hex());
}

Status EmbedRun::finish() {
  // An empty input ends before any worker is ready; the output's shape needs the dimension.
  while (backend_->status().dim == 0) {
    if (cancelled_()) return Error{ErrorKind::Cancelled, "cancelled"};
    MUSTER_TRY(backend_->step(kIdleWait));
  }
  MUSTER_TRY(open_output());
  MUSTER_TRY(write_done());
  report_progress(/*is_last=*/true);
  worker_cpu_seconds_ = backend_->stop();
  if (progress_.read_count == 0) {
    events_.on_notice(fmt::format("there is no text in the input: {} has no rows", out_name()));
  }
  tell_of_fields_not_met();
  const Stopwatch watch(clock_, time_.write);
  MUSTER_TRY(check_model());
  return output_->finish(record());
}

// Workers map the weights: a file that is written in place meanwhile changes what they compute.
Status EmbedRun::check_model() {
  const auto& model = backend_->model();
  if (!model.server.empty() || MUSTER_TRY(model_hash(model.path)) == model.hash) return Done{};
  are_rows_doubtful_ = true;
  return Error{ErrorKind::Corrupt,
               fmt::format("the files of {} have changed while it was used: rows may be of either "
                           "model{}; run again",
                           model.path, options_.stream ? "" : ", and none is kept")};
}

// Shown at once, however short after the last frame: what begins now may take seconds.
void EmbedRun::begin_phase(const std::string& phase) {
  progress_.phase = phase;
  report_progress(/*is_last=*/true);
}

void EmbedRun::report_progress(bool is_last) {
  const auto now = clock_.now();
  if (!is_last && now - last_progress_ < kProgressInterval) return;
  last_progress_ = now;
  if (backend_) {
    status_ = backend_->status();
    if (status_.ready_at) progress_.phase.clear();
    progress_.elapsed_seconds = status_.ready_at ? seconds(now - *status_.ready_at) : 0;
    progress_.devices = std::move(status_.devices);
  }
  if (reader_) {
    progress_.input_size_read = reader_->size_consumed();
    progress_.blank_count = reader_->blank_count();
  }
  events_.on_progress(progress_);
}

OutputRecord EmbedRun::record() const {
  const auto& model = backend_->model();
  OutputRecord record;
  record.model = model.path;
  record.server = model.server;
  record.model_hash = model.hash;
  record.equality_class = model.equality_class;
  record.precision = precision_name(model.precision);
  record.pooling = model.pooling;
  record.normalize = model.normalize;
  record.prompt_name = model.prompt_name;
  record.length_max = model.length_max;
  record.dim = status_.dim;
  record.records_hash = records_hash_.hex();
  record.identity = identity_;
  record.kept = options_.input.keep;
  return record;
}

EmbedReport EmbedRun::report() {
  const auto now = clock_.now();
  EmbedReport report;
  report.progress = progress_;
  report.total_seconds = seconds(now - begin_);
  time_.start = status_.ready_at ? seconds(*status_.ready_at - begin_) : 0;
  report.time = time_;
  report.time.other =
      std::max(0.0, report.total_seconds - time_.read - time_.tokenize - time_.wait - time_.write);
  report.dim = status_.dim;
  report.precision = backend_->model().precision;
  report.precision_reason = backend_->model().precision_reason;
  report.equality_class = backend_->model().equality_class;
  report.out = out_name();
  if (!options_.stream) report.index = files_.index;
  report.first_duplicate = first_duplicate_;
  report.are_all_ids_compared = !ids_.is_full();
  report.first_vector_seconds = first_row_at_ ? seconds(*first_row_at_ - begin_) : 0;
  report.parent_cpu_seconds = cpu_seconds_of_this_process() - cpu_begin_;
  report.worker_cpu_seconds = worker_cpu_seconds_;
  return report;
}

}  // namespace

Result<EmbedReport> embed_corpus(const EmbedOptions& options, const EmbedEvents& events,
                                 const Clock& clock, const std::function<bool()>& cancelled) {
  return EmbedRun(options, events, clock, cancelled).run();
}

}  // namespace muster
