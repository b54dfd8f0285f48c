#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "dataset/vector_file.h"
#include "scheduler/batch_queue.h"

namespace muster {

/// One record between reading and writing.
struct WindowRecord {
  IndexEntry entry;
  std::vector<float> row;            // [dim] once the record is done and good
  bool is_done = false;              // it has its row, or its reason
  bool is_resumed = false;           // an earlier run computed the row
  std::uint64_t input_position = 0;  // bytes of the inputs consumed when it had been read
  std::uint64_t size = 0;            // as the window counted it
};

/// The records that are read and not yet written, in input order: rows come back in any order and
/// leave in this one. It is bounded by records and by bytes, which is what keeps the memory of a
/// run flat.
///
/// Threads: not thread-safe; owned by the loop of the run.
class RecordWindow {
 public:
  /// Room for `record_max` records and `size_max` bytes of texts, ids and rows; a larger record
  /// still goes in alone.
  RecordWindow(std::size_t record_max, std::uint64_t size_max);

  bool has_room() const;
  bool is_empty() const { return records_.empty(); }

  /// Takes a record at the end; its key is what `find` knows it by.
  ItemKey push(WindowRecord record);

  /// What the next `push` will return.
  ItemKey next_key() const { return first_key_ + records_.size(); }

  /// nullptr when it has left.
  WindowRecord* find(ItemKey key);

  /// Calls `visit` for each record that is done, the oldest first, until it answers with an error.
  Status visit_done(const std::function<Status(ItemKey, const WindowRecord&)>& visit) const;

  /// The oldest record if it is done.
  WindowRecord* front_if_done();
  void pop_front();

 private:
  std::uint64_t size_of(const WindowRecord& record) const;

  const std::size_t record_max_;
  const std::uint64_t size_max_;
  std::deque<WindowRecord> records_;
  ItemKey first_key_ = 0;  // of records_.front()
  std::uint64_t size_ = 0;
};

}  // namespace muster
