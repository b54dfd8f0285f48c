// A chunk of records goes from the thread to the loop at a time, so that a lock and a wake-up are
// shared by many. An error of the input travels behind the records before it: the run takes those
// first, as if it had read them itself.

#include "jobs/record_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace muster {
namespace {

// Some 0.2 ms of the thread's time; a wake-up is a hundredth of it.
constexpr std::size_t kChunkRecords = 256;
constexpr std::uint64_t kChunkBytes = 64 * 1024;

// Ready for the loop: as many as it takes between two looks at the workers, and what a disk that
// stutters is late by.
constexpr std::size_t kChunksMost = 4;
constexpr std::uint64_t kReadyBytesMost = kChunksMost * kChunkBytes;

}  // namespace

RecordSource::RecordSource(std::unique_ptr<TextReader> reader, std::vector<std::string> inputs)
    : reader_(std::move(reader)),
      inputs_(std::move(inputs)),
      reads_ahead_(reader_->size_total().has_value()),
      size_consumed_(reader_->size_consumed()),
      blank_count_(reader_->blank_count()) {
  if (reads_ahead_) thread_ = std::jthread([this] { run(); });
}

RecordSource::~RecordSource() {
  if (!reads_ahead_) return;
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<bool> RecordSource::next(ReadRecord& read) {
  if (next_ == taken_.records.size() && !taken_.is_last) take_chunk();
  if (next_ < taken_.records.size()) {
    read = std::move(taken_.records[next_++]);
    size_consumed_ = read.record->input_position;
    blank_count_ = read.blank_count;
    return true;
  }
  size_consumed_ = taken_.size_consumed;
  blank_count_ = taken_.blank_count;
  if (taken_.error) return *std::exchange(taken_.error, std::nullopt);
  return false;
}

bool RecordSource::is_ready() const {
  if (!reads_ahead_ || next_ < taken_.records.size() || taken_.is_last) return true;
  const MutexLock lock(mutex_);
  return !ready_.empty();
}

void RecordSource::take_spares(RecordSpares& spares) {
  if (!reads_ahead_) return spares_.take_records_from(spares);
  const MutexLock lock(mutex_);
  returned_.take_records_from(spares);
}

void RecordSource::run() {
  for (bool is_last = false; !is_last;) {
    Chunk chunk;
    read_chunk(chunk, kChunkRecords);
    is_last = chunk.is_last;
    {
      const MutexLock lock(mutex_);
      while (!is_over_ && (ready_.size() >= kChunksMost || ready_size_ >= kReadyBytesMost)) {
        changed_.wait(mutex_);
      }
      if (is_over_) return;
      ready_size_ += chunk.size;
      ready_.push_back(std::move(chunk));
      spares_.take_records_from(returned_);
    }
    changed_.notify_all();
  }
}

// A chunk that is not the last has a record at least.
void RecordSource::take_chunk() {
  next_ = 0;
  if (!reads_ahead_) return read_chunk(taken_, 1);
  {
    const MutexLock lock(mutex_);
    while (ready_.empty()) changed_.wait(mutex_);
    taken_ = std::move(ready_.front());
    ready_.pop_front();
    ready_size_ -= taken_.size;
  }
  changed_.notify_all();
}

// Out of memory in the thread would else end the program without a word of the input, and the
// records before it would be lost. What was half read is of no use: the reader is not asked again.
void RecordSource::read_chunk(Chunk& chunk, std::size_t count_most) {
  chunk.records.clear();
  chunk.size = 0;
  try {
    read_records(chunk, count_most);
  } catch (const std::bad_alloc&) {
    chunk.error = no_memory_error();
    chunk.is_last = true;
  }
  chunk.size_consumed = reader_->size_consumed();
  chunk.blank_count = reader_->blank_count();
}

void RecordSource::read_records(Chunk& chunk, std::size_t count_most) {
  chunk.records.reserve(count_most);
  while (chunk.records.size() < count_most && chunk.size < kChunkBytes) {
    const auto has_next = reader_->next(text_);
    if (!has_next) chunk.error = has_next.error();
    chunk.is_last = !has_next || !*has_next;
    if (chunk.is_last) break;
    const auto& read = chunk.records.emplace_back(record_of_text());
    const auto& entry = read.record->entry;
    chunk.size += entry.text.size() + entry.id.size() + entry.fields.size();
  }
}

// The reader has or has not noted yet which line it was at.
Error RecordSource::no_memory_error() const {
  const auto line = std::max<std::uint64_t>(text_.line, 1);
  return {ErrorKind::ResourceExhausted, fmt::format("there is no memory for a record near {}",
                                                    place_name(inputs_[text_.input_index], line))};
}

ReadRecord RecordSource::record_of_text() {
  ReadRecord read{
      .record = spares_.take_record(), .fault = nullptr, .blank_count = reader_->blank_count()};
  auto& record = *read.record;
  record.entry.input = inputs_[text_.input_index];
  record.entry.line = text_.line;
  record.entry.id = text_.id;
  record.entry.fields = text_.fields;
  record.is_conversation = text_.is_conversation;
  record.input_position = reader_->size_consumed();
  if (text_.fault) {
    read.fault = std::make_unique<Error>(*text_.fault);
  } else {
    record.entry.text.swap(text_.text);  // whose memory is used again
  }
  return read;
}

}  // namespace muster
