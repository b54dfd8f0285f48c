#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "dataset/output_record.h"
#include "dataset/vector_file.h"
#include "jobs/record_window.h"

namespace muster {

/// Where the results of a run go, in input order: files that a later run can resume (run_output.h),
/// or a stream (stream_output.h).
///
/// Threads: not thread-safe; one at a time, the loop of the run or its writer.
class RecordOutput {
 public:
  virtual ~RecordOutput() = default;

  /// Appends the next record, which is done: with its result, or as a bad one. Sets `entry.row` to
  /// how many results there are before it; nullopt for a bad one.
  virtual Status append(WindowRecord& record) = 0;

  /// Everything so far is now as safe as it can be. `records_hash` is over all records consumed.
  virtual Status commit(const std::string& records_hash) = 0;

  /// The same, beside what the caller does next: whether it went well, a later call says. Nothing
  /// while the one before is under way.
  virtual Status begin_commit(const std::string& records_hash) = 0;

  /// Commits and ends it. record: how the results were made.
  virtual Status finish(OutputRecord record) = 0;

  /// Records that a resumed run would find done.
  virtual std::uint64_t durable_record_count() const = 0;

  /// All is whole and durable: at most the final names are missing.
  virtual bool is_finished() const = 0;
};

/// What stands in a line of JSON before the vector of a record: `"id":"a7","fields":{…},`, what of
/// it there is.
std::string line_members(const IndexEntry& entry);

}  // namespace muster
