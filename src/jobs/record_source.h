#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "dataset/text_reader.h"
#include "jobs/record_spares.h"
#include "jobs/record_window.h"

namespace muster {

/// A record of the input on its way to the window.
struct ReadRecord {
  RecordPtr record;               // what was read, and its place; no more of it is set
  std::unique_ptr<Error> fault;   // set: a bad one, without a text; the message names the place
  std::uint64_t blank_count = 0;  // TextReader::blank_count when it had been read
};

/// The records of a run's inputs, in their order. Where all inputs are regular files, a thread
/// reads a little ahead of the loop: to find, check and copy a text costs the loop as much as all
/// that it decides of it. From standard input and pipes a record is read when it is asked for: one
/// that is there shall not wait for one that is not, and who is asked whether to end is the loop's.
///
/// Bounded: what is read ahead are at most six chunks, each of 256 records or 64 KiB and one record
/// more, and no more than three where these are larger than 256 KiB: one that is ready, the one
/// that the thread is at, and the one that is taken from.
///
/// Threads: not thread-safe; owned by the loop of the run. With a thread the reader is called by
/// that alone until the end of the input.
class RecordSource {
 public:
  /// inputs: their names, as the reader numbers them. The reader may have given records before.
  RecordSource(std::unique_ptr<TextReader> reader, std::vector<std::string> inputs);
  /// Waits for the chunk that the thread is at.
  ~RecordSource();
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  /// The next record; false at the end of the last input. It waits for either.
  ///
  /// Errors: those of TextReader::next and ResourceExhausted where a record finds no memory, behind
  /// the records before it; then it is at the end.
  Result<bool> next(ReadRecord& read);

  /// Whether `next` would wait for no thread.
  bool is_ready() const;

  /// As TextReader::size_consumed and TextReader::blank_count, behind the last record that `next`
  /// gave.
  std::uint64_t size_consumed() const { return size_consumed_; }
  std::uint64_t blank_count() const { return blank_count_; }

  /// Takes the records of `spares`, to be used again.
  void take_spares(RecordSpares& spares);

  /// As TextReader::fields_not_met, once `next` was at the end.
  std::vector<std::string> fields_not_met() const { return reader_->fields_not_met(); }

 private:
  struct Chunk {
    std::vector<ReadRecord> records;
    std::uint64_t size = 0;           // bytes of their texts, ids and fields
    bool is_last = false;             // behind them is the end, or
    std::optional<Error> error;       // this
    std::uint64_t size_consumed = 0;  // behind all of it
    std::uint64_t blank_count = 0;
  };

  void run();
  void take_chunk();
  void read_chunk(Chunk& chunk, std::size_t count_most);
  void read_records(Chunk& chunk, std::size_t count_most);
  Error no_memory_error() const;
  ReadRecord record_of_text();

  const std::unique_ptr<TextReader> reader_;
  const std::vector<std::string> inputs_;
  const bool reads_ahead_;

  // Of whoever reads: the thread, or without one the loop.
  TextRecord text_;  // the one just read; its buffers are used again
  RecordSpares spares_;

  // Of the loop.
  Chunk taken_;
  std::size_t next_ = 0;  // of its records
  std::uint64_t size_consumed_;
  std::uint64_t blank_count_;

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_over_ MUSTER_GUARDED_BY(mutex_) = false;
  std::deque<Chunk> ready_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t ready_size_ MUSTER_GUARDED_BY(mutex_) = 0;  // bytes of these
  RecordSpares returned_ MUSTER_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace muster
