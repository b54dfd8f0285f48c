// The loop hands over what it has, and the thread takes all of it at once: the more there is, the
// fewer locks a record costs. Counts and failure are shared after each such part.

#include "jobs/record_writer.h"

#include <iterator>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/prefetch.h"
#include "jobs/input_identity.h"

namespace muster {
namespace {

// Enough for a disk that stutters, and little beside the window.
constexpr std::uint64_t kHeldMost = 32ULL << 20;

std::uint64_t size_of(const WindowRecord& record) {
  return record.size + record.result.row.size() * sizeof(float);
}

// They come from another core's cache: the record first, which names the row's memory, and then the
// row.
constexpr std::size_t kRecordsAhead = 4;
constexpr std::size_t kRowsAhead = 2;

[[gnu::always_inline]] inline void prefetch_after(const std::vector<RecordPtr>& records,
                                                  std::size_t index) {
  if (index + kRecordsAhead < records.size()) {
    prefetch(std::as_bytes(std::span(records[index + kRecordsAhead].get(), 1)));
  }
  if (index + kRowsAhead < records.size()) {
    prefetch(std::as_bytes(std::span<const float>(records[index + kRowsAhead]->result.row)));
  }
}

}  // namespace

RecordWriter::RecordWriter(std::unique_ptr<RecordOutput> output, Hash128 records_hash)
    : output_(std::move(output)), records_hash_(std::move(records_hash)) {
  counts_.durable_record_count = output_->durable_record_count();
  thread_ = std::jthread([this] { run(); });
}

RecordWriter::~RecordWriter() {
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool RecordWriter::has_room() const {
  const MutexLock lock(mutex_);
  return held_size_ < kHeldMost;
}

void RecordWriter::give(std::vector<RecordPtr> records) {
  if (records.empty()) return;
  std::uint64_t size = 0;
  for (const auto& record : records) size += size_of(*record);
  {
    const MutexLock lock(mutex_);
    held_size_ += size;
    waiting_size_ += size;
    if (waiting_.empty()) {
      waiting_ = std::move(records);
    } else {
      std::move(records.begin(), records.end(), std::back_inserter(waiting_));
    }
  }
  changed_.notify_all();
}

void RecordWriter::return_to(RecordSpares& spares) {
  const MutexLock lock(mutex_);
  spares.take_from(spares_);
}

void RecordWriter::begin_commit() {
  {
    const MutexLock lock(mutex_);
    is_commit_asked_for_ = true;
  }
  changed_.notify_all();
}

Status RecordWriter::wait() {
  const MutexLock lock(mutex_);
  while (is_busy_ || is_commit_asked_for_ || !waiting_.empty()) changed_.wait(mutex_);
  return Status(status_);
}

Status RecordWriter::commit() {
  const auto written = wait();
  const auto done = output_->commit(records_hash_.hex());
  const MutexLock lock(mutex_);
  if (written && !done) status_ = done.error();
  counts_.durable_record_count = output_->durable_record_count();
  return Status(status_);
}

Status RecordWriter::finish(OutputRecord record) {
  MUSTER_TRY(wait());
  record.records_hash = records_hash_.hex();
  const auto done = output_->finish(std::move(record));
  const MutexLock lock(mutex_);
  if (!done) status_ = done.error();
  counts_.durable_record_count = output_->durable_record_count();
  return Status(status_);
}

void RecordWriter::drop_waiting() {
  const MutexLock lock(mutex_);
  waiting_.clear();
  waiting_size_ = 0;
  is_dropping_ = is_busy_;
}

Status RecordWriter::status() const {
  const MutexLock lock(mutex_);
  return Status(status_);
}

WrittenCounts RecordWriter::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void RecordWriter::run() {
  const SteadyClock clock;
  for (;;) {
    std::vector<RecordPtr> records;
    RecordSpares written;
    bool commits = false;
    WrittenCounts counts;
    Status status = Done{};
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !is_commit_asked_for_ && !is_over_) changed_.wait(mutex_);
      if (is_over_) return;
      records.swap(waiting_);
      waiting_size_ = 0;
      commits = std::exchange(is_commit_asked_for_, false);
      is_busy_ = true;
      counts = counts_;
      status = status_;
    }
    const auto begin = clock.now();
    if (status) {
      status = write(records, counts, written);
    } else {
      std::move(records.begin(), records.end(), std::back_inserter(unwritten_));
    }
    if (status && commits) status = output_->begin_commit(records_hash_.hex());
    counts.durable_record_count = output_->durable_record_count();
    records.clear();  // what was dropped
    counts.busy_seconds += seconds(clock.now() - begin);
    {
      const MutexLock lock(mutex_);
      is_busy_ = is_dropping_ = false;
      held_size_ = waiting_size_;
      spares_.take_from(written);
      counts_ = counts;
      status_ = status;
    }
    changed_.notify_all();
  }
}

Status RecordWriter::write(std::vector<RecordPtr>& records, WrittenCounts& counts,
                           RecordSpares& written) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (is_dropping_) break;
    prefetch_after(records, i);
    auto& record = *records[i];
    auto& entry = record.entry;
    if (const auto appended = output_->append(record); !appended) {
      const auto from = records.begin() + static_cast<std::ptrdiff_t>(i);
      std::move(from, records.end(), std::back_inserter(unwritten_));
      return appended;
    }
    hash_record(records_hash_, content_of(record));
    if (!entry.row) {
      ++counts.bad_count;
    } else if (!record.is_resumed) {
      ++counts.text_count;
      counts.token_count += entry.token_count;
      counts.reply_token_count += record.result.reply_token_count;
      counts.truncated_count += entry.is_truncated ? 1 : 0;
    }
    counts.input_size_consumed = record.input_position;
    written.add(std::move(records[i]));
  }
  return Done{};
}

}  // namespace muster
