#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "base/result.h"
#include "jobs/record_output.h"
#include "jobs/record_spares.h"
#include "jobs/record_window.h"

namespace muster {

/// What has been written by this run, as far as it is.
struct WrittenCounts {
  std::uint64_t text_count = 0;         // results, without those of an earlier run
  std::uint64_t token_count = 0;        // of their texts, and
  std::uint64_t reply_token_count = 0;  // of their replies
  std::uint64_t truncated_count = 0;
  std::uint64_t bad_count = 0;
  std::uint64_t input_size_consumed = 0;   // bytes of the inputs, up to the last record written
  std::uint64_t durable_record_count = 0;  // RecordOutput::durable_record_count
  double busy_seconds = 0;
};

/// Writes the records of a run in the order in which they are given, on a thread of its own: a
/// result costs as much to write as all that the loop does for it.
///
/// After a failure nothing more is written, and `status` says what it was. What was given and not
/// written is kept.
///
/// Threads: not thread-safe; owned by the loop of the run. The output is called by its thread, and
/// by the loop only while that has nothing to do.
class RecordWriter {
 public:
  /// records_hash: of the records before these.
  RecordWriter(std::unique_ptr<RecordOutput> output, Hash128 records_hash);
  /// Waits for what the thread is at; the rest is dropped.
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Whether more should be given: what waits is bounded by the caller's heeding it.
  bool has_room() const;

  /// Records that are done.
  void give(std::vector<RecordPtr> records);

  /// Gives records that are written to `spares`, as far as there is room for them.
  void return_to(RecordSpares& spares);

  /// RecordOutput::begin_commit behind all that was given.
  void begin_commit();

  /// Waits until all that was given is written.
  Status wait();

  /// The same, and RecordOutput::commit: also after a failure, so that what is durable counts.
  Status commit();

  /// As `commit`, and RecordOutput::finish. record: all but `records_hash`.
  Status finish(OutputRecord record);

  /// What waits is dropped: nobody is to see it any more.
  void drop_waiting();

  Status status() const;
  WrittenCounts counts() const;

  /// After `commit` has failed: what was given and not written, in order.
  const std::vector<RecordPtr>& unwritten() const { return unwritten_; }

  /// RecordOutput::is_finished, once `commit` or `finish` has returned.
  bool is_finished() const { return output_->is_finished(); }

 private:
  void run();
  Status write(std::vector<RecordPtr>& records, WrittenCounts& counts, RecordSpares& written);

  const std::unique_ptr<RecordOutput> output_;
  Hash128 records_hash_;
  std::vector<RecordPtr> unwritten_;       // the thread's while it is busy
  std::atomic<bool> is_dropping_ = false;  // what the thread has not written yet

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_over_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_busy_ MUSTER_GUARDED_BY(mutex_) = false;
  bool is_commit_asked_for_ MUSTER_GUARDED_BY(mutex_) = false;
  std::vector<RecordPtr> waiting_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t waiting_size_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t held_size_ MUSTER_GUARDED_BY(mutex_) = 0;  // bytes of these and of what is written
  RecordSpares spares_ MUSTER_GUARDED_BY(mutex_);
  Status status_ MUSTER_GUARDED_BY(mutex_) = Done{};
  WrittenCounts counts_ MUSTER_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace muster
