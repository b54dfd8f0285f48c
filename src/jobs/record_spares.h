#pragma once

#include <cstdint>
#include <vector>

#include "jobs/record_window.h"

namespace muster {

/// Records that are written, and the memory of their rows, to be used again. A record taken anew
/// costs its loop four pieces of memory, which the thread that writes would give back: each call of
/// either waits for the other.
///
/// Bounded; what is beyond is given back. Rows are kept apart from records, since most records of a
/// window have none yet.
///
/// Threads: not thread-safe.
class RecordSpares {
 public:
  /// A record as a new one is.
  RecordPtr take_record();

  /// Memory for a row, which still holds an earlier one; empty where there is none.
  std::vector<float> take_row();

  /// Nobody needs any more what the record holds.
  void add(RecordPtr record);

  /// Takes what `other` has, as far as there is room.
  void take_from(RecordSpares& other);
  /// The same of its records alone.
  void take_records_from(RecordSpares& other);

  /// Whether there is little left of one of the two.
  bool is_low() const;

 private:
  bool has_room_for(const std::vector<float>& row) const;
  std::vector<float> pop_row();
  void add_row(std::vector<float> row);

  std::vector<RecordPtr> records_;        // each as a new one
  std::vector<std::vector<float>> rows_;  // none without memory
  std::uint64_t rows_size_ = 0;           // bytes
};

}  // namespace muster
