// One run: read some records, step the backend, write what is done; until the input is at its end.
// Rows come back in any order and are written in input order, so memory is bounded by the window
// and not by the corpus, and a journal that counts records says exactly where to go on. Behind its
// steps the rows that wait for an earlier one are kept beside the output. All is decided on one
// thread; others only tokenise, write, and wait for the disk.

#include "jobs/embed.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "jobs/embed_run.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

constexpr Duration kIdleWait = std::chrono::milliseconds(100);  // how soon Ctrl-C is seen
// How soon it is seen that the writer has room.
constexpr Duration kWriterWait = std::chrono::milliseconds(1);
constexpr Duration kWriterWaitMost = std::chrono::milliseconds(8);

}  // namespace

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

Status EmbedRun::pump() {
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

Status EmbedRun::finish() {
  // An empty input ends before any worker is ready; the output's shape needs the dimension.
  while (backend_->status().dim == 0) {
    if (cancelled_()) return Error{ErrorKind::Cancelled, "cancelled"};
    MUSTER_TRY(backend_->step(kIdleWait));
  }
  MUSTER_TRY(open_output());
  MUSTER_TRY(write_done());
  {
    const Stopwatch watch(clock_, time_.wait_for_writer);
    MUSTER_TRY(writer_->wait());
  }
  report_progress(/*is_last=*/true);
  worker_cpu_seconds_ = backend_->stop();
  if (progress_.read_count == 0) {
    events_.on_notice(fmt::format("there is no text in the input: {} has no rows", out_name()));
  }
  tell_of_fields_not_met();
  MUSTER_TRY(check_model());
  const Stopwatch watch(clock_, time_.wait_for_writer);
  return writer_->finish(record());
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

// What is done stays for --resume, where it can be resumed, is sound and is anything.
Error EmbedRun::stopped(const Error& error) {
  if (!writer_) return error;
  if (options_.stream) return stopped_stream(error);
  if (writer_->is_finished()) {
    return Error{error.kind, fmt::format("{}; all records are done and only names are missing: "
                                         "--resume gives them",
                                         error.message)};
  }
  if (!are_rows_doubtful_) keep_all();
  const auto count = kept_count();
  if (are_rows_doubtful_ || count == 0 || reads_stdin()) {
    writer_.reset();
    ahead_.reset();
    discard(files_);
    return error;
  }
  // A record that is wrong would end it again; how to go on after Ctrl-C the caller knows better.
  if (error.kind == ErrorKind::Cancelled || error.kind == ErrorKind::InvalidArgument) return error;
  return Error{error.kind,
               fmt::format("{}; {} done: go on with --resume", error.message,
                           count == 1 ? "1 record is" : with_thousands(count) + " records are")};
}

// What has been written is with the reader, and of what waits nothing can be resumed. A reader that
// takes nothing still holds the one write that is under way; a second Ctrl-C ends the process.
Error EmbedRun::stopped_stream(const Error& error) {
  if (error.kind == ErrorKind::Cancelled) writer_->drop_waiting();
  (void)writer_->commit();
  take_counts();
  const auto count = progress_.text_count;
  return Error{error.kind,
               fmt::format("{}; {} written before that", error.message,
                           count == 1 ? "1 row was" : with_thousands(count) + " rows were")};
}

Result<EmbedReport> embed_corpus(const EmbedOptions& options, const EmbedEvents& events,
                                 const Clock& clock, const std::function<bool()>& cancelled) {
  return EmbedRun(options, events, clock, cancelled).run();
}

}  // namespace muster
