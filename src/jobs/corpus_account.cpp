// What a run tells of itself: its progress while it lasts, and the report at the end.

#include <algorithm>
#include <utility>

#include "base/cpu_time.h"
#include "jobs/corpus_run.h"

namespace muster {
namespace {

constexpr Duration kProgressInterval = std::chrono::milliseconds(100);

}  // namespace

// Shown at once, however short after the last frame: what begins now may take seconds.
void CorpusRun::begin_phase(const std::string& phase) {
  progress_.phase = phase;
  report_progress(/*is_last=*/true);
}

void CorpusRun::take_counts() {
  if (!writer_) return;
  const auto counts = writer_->counts();
  progress_.text_count = counts.text_count;
  progress_.token_count = counts.token_count;
  progress_.reply_token_count = counts.reply_token_count;
  progress_.truncated_count = counts.truncated_count;
  progress_.bad_count = resumed_bad_count_ + counts.bad_count;
  if (counts.input_size_consumed > 0) progress_.input_size_consumed = counts.input_size_consumed;
  time_.write = counts.busy_seconds;
}

void CorpusRun::report_progress(bool is_last) {
  const auto now = clock_.now();
  if (!is_last && now - last_progress_ < kProgressInterval) return;
  last_progress_ = now;
  if (backend_) {
    status_ = backend_->status();
    if (status_.ready_at) progress_.phase.clear();
    progress_.elapsed_seconds = status_.ready_at ? seconds(now - *status_.ready_at) : 0;
    progress_.devices = std::move(status_.devices);
  }
  take_counts();
  if (source_) {
    // Not what is read but what is known: a share of the tokens stands for a share of the bytes.
    progress_.input_size_read = unknown_count_ > 0 ? encoded_position_ : source_->size_consumed();
    progress_.blank_count = source_->blank_count();
  } else if (reader_) {
    progress_.input_size_read = reader_->size_consumed();
    progress_.blank_count = reader_->blank_count();
  }
  events_.on_progress(progress_);
}

// A name with a slip in it would else keep nothing, and say so only when a search asks for it.
void CorpusRun::tell_of_fields_not_met() const {
  for (const auto& sentence : source_->fields_not_met()) {
    events_.on_notice("no record has a field of --keep: " + sentence);
  }
}

CorpusReport CorpusRun::confirmed(const OutputRecord& record) {
  CorpusReport report;
  report.was_complete = true;
  report.progress.resumed_count = record.row_count;
  report.progress.read_count = record.record_count;
  report.progress.bad_count = record.record_count - record.row_count;
  report.equality_class = record.equality_class;
  report.out = form_.files.out;
  report.total_seconds = seconds(clock_.now() - begin_);
  return report;
}

CorpusReport CorpusRun::report() {
  const auto now = clock_.now();
  take_counts();
  CorpusReport report;
  report.progress = progress_;
  report.total_seconds = seconds(now - begin_);
  time_.start = status_.ready_at ? seconds(*status_.ready_at - begin_) : 0;
  report.time = time_;
  report.time.tokenize = status_.tokenize_seconds;
  report.time.other =
      std::max(0.0, report.total_seconds - time_.read - time_.wait - time_.wait_for_writer);
  report.out = out_name();
  report.first_duplicate = first_duplicate_;
  report.are_all_ids_compared = !ids_.is_full();
  report.first_result_seconds = first_result_at_ ? seconds(*first_result_at_ - begin_) : 0;
  report.parent_cpu_seconds = process_cpu_seconds() - cpu_begin_;
  report.loop_cpu_seconds = thread_cpu_seconds() - loop_cpu_begin_;
  report.worker_cpu_seconds = worker_cpu_seconds_;
  return report;
}

std::string CorpusRun::results_word() const {
  return form_.files.kind == OutputKind::Replies ? "replies" : "rows";
}

}  // namespace muster
