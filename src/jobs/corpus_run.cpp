// One run: read some records, step the backend, write what is done; until the input is at its end.
// Results come back in any order and are written in input order, so memory is bounded by the window
// and not by the corpus, and a journal that counts records says exactly where to go on. Behind its
// steps the results that wait for an earlier one are kept beside the output. All is decided on one
// thread; others only tokenise, write, and wait for the disk.

#include "jobs/corpus_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr Duration kIdleWait = std::chrono::milliseconds(100);  // how soon Ctrl-C is seen
// How soon it is seen that the writer has room.
constexpr Duration kWriterWait = std::chrono::milliseconds(1);
constexpr Duration kWriterWaitMost = std::chrono::milliseconds(8);

}  // namespace

Result<CorpusOutcome> CorpusRun::run() {
  begin_phase("reading the model");
  MUSTER_TRY(prepare());
  const auto found = MUSTER_TRY(take_names());
  const auto& files = form_.files;
  if (found == FoundOutput::Unnamed && reads_stdin()) {
    events_.on_notice(fmt::format("{} lacks only its names: standard input is not read again",
                                  files.out.string()));
  }
  if (options_.resume && (found == FoundOutput::Unnamed || found == FoundOutput::Finished)) {
    const auto difference_from = [this](const RunIdentity& then) {
      return work_.difference_from(then);
    };
    auto record = MUSTER_TRY(confirm_finished(found, files, options_, difference_from, cancelled_));
    auto told = confirmed(record);
    return CorpusOutcome{.report = std::move(told), .record = std::move(record)};
  }
  MUSTER_TRY(open_backend(found));
  const auto pumped = pump();
  auto record = pumped ? finish() : Result<OutputRecord>(pumped.error());
  if (!record) return stopped(record.error());
  auto told = report();
  told.equality_class = record->equality_class;
  return CorpusOutcome{.report = std::move(told), .record = *std::move(record)};
}

Status CorpusRun::pump() {
  while (!is_at_end_ || !window_.is_empty()) {
    if (cancelled_()) return Error{ErrorKind::Cancelled, "cancelled"};
    const bool can_read = !is_at_end_ && window_.has_room();
    if (can_read) MUSTER_TRY(read_turn());
    const bool waits_for_writer = writer_ && !writer_->has_room();
    writer_wait_ =
        waits_for_writer ? std::clamp(2 * writer_wait_, kWriterWait, kWriterWaitMost) : Duration{0};
    {
      const Stopwatch watch(clock_, waits_for_writer ? time_.wait_for_writer : time_.wait);
      const auto most = waits_for_writer ? writer_wait_ : kIdleWait;
      MUSTER_TRY(backend_->step(can_read ? Duration{0} : most));
    }
    if (fatal_) return *fatal_;
    MUSTER_TRY(open_output());
    MUSTER_TRY(write_done());
    report_progress(/*is_last=*/false);
  }
  return Done{};
}

Result<OutputRecord> CorpusRun::finish() {
  // An empty input ends before any worker is ready; the output may need the shape of a result.
  MUSTER_TRY(open_output());
  while (!writer_) {
    if (cancelled_()) return Error{ErrorKind::Cancelled, "cancelled"};
    MUSTER_TRY(backend_->step(kIdleWait));
    MUSTER_TRY(open_output());
  }
  MUSTER_TRY(write_done());
  {
    const Stopwatch watch(clock_, time_.wait_for_writer);
    MUSTER_TRY(writer_->wait());
  }
  report_progress(/*is_last=*/true);
  worker_cpu_seconds_ = backend_->stop();
  if (progress_.read_count == 0) {
    events_.on_notice(fmt::format("there is no {} in the input: {} has no {}", form_.text_word,
                                  out_name(), results_word()));
  }
  tell_of_fields_not_met();
  auto record = work_.record();
  // Workers map the weights: a file that is written in place meanwhile changes what they compute.
  are_results_doubtful_ = !record && record.error().kind == ErrorKind::Corrupt;
  if (!record) return record;
  const Stopwatch watch(clock_, time_.wait_for_writer);
  MUSTER_TRY(writer_->finish(*record));
  return record;
}

// What is done stays for --resume, where it can be resumed, is sound and is anything.
Error CorpusRun::stopped(const Error& error) {
  if (!writer_) return error;
  if (options_.stream) return stopped_stream(error);
  if (writer_->is_finished()) {
    return Error{error.kind, fmt::format("{}; all records are done and only names are missing: "
                                         "--resume gives them",
                                         error.message)};
  }
  if (!are_results_doubtful_) keep_all();
  const auto count = kept_count();
  if (are_results_doubtful_ || count == 0 || reads_stdin()) {
    // A step whose line was not written does not count: its results are on the disk in vain.
    const bool is_lost = count == 0 && !writer_->status();
    writer_.reset();
    ahead_.reset();
    discard(form_.files);
    if (!is_lost) return error;
    return Error{error.kind,
                 fmt::format("{}; nothing of the run is kept: begin it again", error.message)};
  }
  // A record that is wrong would end it again; how to go on after Ctrl-C the caller knows better.
  if (error.kind == ErrorKind::Cancelled || error.kind == ErrorKind::InvalidArgument) return error;
  return Error{error.kind,
               fmt::format("{}; {} done: go on with --resume", error.message,
                           count == 1 ? "1 record is" : with_thousands(count) + " records are")};
}

// What has been written is with the reader, and of what waits nothing can be resumed. A reader that
// takes nothing still holds the one write that is under way; a second Ctrl-C ends the process. Of a
// stream that has failed nobody knows how much of the last piece has come through.
Error CorpusRun::stopped_stream(const Error& error) {
  if (error.kind == ErrorKind::Cancelled) writer_->drop_waiting();
  if (!writer_->commit()) return error;
  take_counts();
  const auto count = progress_.text_count;
  return Error{
      error.kind,
      count == 1 ? fmt::format("{}; 1 {} was written before that", error.message, form_.result_word)
                 : fmt::format("{}; {} {} were written before that", error.message,
                               with_thousands(count), results_word())};
}

}  // namespace muster
