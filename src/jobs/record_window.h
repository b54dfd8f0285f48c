#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "dataset/vector_file.h"
#include "scheduler/batch_queue.h"

namespace muster {

/// What was computed of a record: one of the two.
struct RecordResult {
  std::vector<float> row = {};  // [dim]
  std::string reply = {};       // members of its line: reply_line.h
  std::uint32_t reply_token_count = 0;
};

/// One record between reading and writing.
struct WindowRecord {
  ItemKey key = 0;           // by its place in this run
  std::uint64_t number = 0;  // in all inputs, from 0
  IndexEntry entry;
  bool is_conversation = false;      // entry.text is the JSON of its messages
  RecordResult result;               // empty until the record is done and good
  bool is_done = false;              // it has its result, or its reason
  bool is_resumed = false;           // an earlier run computed the result
  std::uint64_t input_position = 0;  // bytes of the inputs consumed when it had been read
  std::uint64_t size = 0;            // as the window counted it

  bool has_result() const { return !result.row.empty() || !result.reply.empty(); }
};

/// It stays where it is on its way from the reader to the writer and back (record_spares.h).
using RecordPtr = std::unique_ptr<WindowRecord>;

/// The records that are read and not yet written, in input order: results come back in any order
/// and leave in this one. It is bounded by records and by bytes, which is what keeps the memory of
/// a run flat.
///
/// Threads: not thread-safe; owned by the loop of the run.
class RecordWindow {
 public:
  /// Room for `record_max` records at first, later for as many as `fit_to_pace` finds, up to
  /// `record_most`; and for `size_max` bytes of texts, ids and replies. A larger record still goes
  /// in alone.
  RecordWindow(std::size_t record_max, std::size_t record_most, std::uint64_t size_max);

  bool has_room() const;
  bool is_empty() const { return records_.empty(); }

  /// Takes a record at the end; its key is what `find` knows it by.
  ItemKey push(RecordPtr record);

  /// Room for half a second of records at the pace in which they have left since the last call,
  /// `since` ago, and never for fewer than at first: fast devices need more texts on their way,
  /// from which batches of one length can be cut.
  void fit_to_pace(Duration since);

  /// The tokens of a record that has not left are known now: its size counts their ids.
  WindowRecord& note_tokens(ItemKey key, std::uint32_t token_count);

  /// The record is done: its size counts its reply.
  void note_result(ItemKey key, RecordResult result);

  /// What the next `push` will return.
  ItemKey next_key() const { return first_key_ + records_.size(); }

  /// nullptr when it has left.
  WindowRecord* find(ItemKey key);

  /// Calls `visit` for each record that is done, the oldest first, until it answers with an error.
  /// only_waiting: but those with an unfinished one before them.
  Status visit_done(bool only_waiting,
                    const std::function<Status(const WindowRecord&)>& visit) const;

  /// The oldest record if it is done.
  WindowRecord* front_if_done();
  /// The oldest record, which leaves.
  RecordPtr pop_front();

 private:
  static std::uint64_t size_of(const WindowRecord& record);
  void recount(WindowRecord& record);

  const std::size_t record_least_;
  const std::size_t record_most_;
  std::size_t record_max_;  // between them
  const std::uint64_t size_max_;
  std::deque<RecordPtr> records_;
  ItemKey first_key_ = 0;       // of records_.front()
  ItemKey first_key_then_ = 0;  // when `fit_to_pace` was called last
  std::uint64_t size_ = 0;
};

}  // namespace muster
