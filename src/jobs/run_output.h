#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "dataset/output_record.h"
#include "dataset/run_journal.h"
#include "dataset/vector_file.h"
#include "dataset/vector_writer.h"

namespace muster {

/// The names of one run's files: OUT and what lies beside it, and what they are called until they
/// are whole.
struct RunFiles {
  explicit RunFiles(const std::filesystem::path& out);

  std::filesystem::path out;           // x.npy
  std::filesystem::path index;         // x.npy.index.jsonl
  std::filesystem::path about;         // x.npy.run.json
  std::filesystem::path out_part;      // x.npy.part
  std::filesystem::path index_part;    // x.npy.index.jsonl.part
  std::filesystem::path about_part;    // x.npy.run.json.part
  std::filesystem::path journal;       // x.npy.journal
  std::filesystem::path journal_part;  // x.npy.journal.part
  std::filesystem::path lock;          // x.npy.lock

  std::vector<std::filesystem::path> all() const;
};

/// Where an interrupted run can go on: its journal, cut to the steps whose bytes are really there.
struct RunResumption {
  std::unique_ptr<RunJournal> journal;
  RunStep last;  // zero counts when nothing was done yet
};

/// Reads the journal of an interrupted run and checks the part files against it, step by step.
///
/// Errors: those of RunJournal::reopen and of reading the part files; Corrupt when a part that the
/// journal speaks of is gone.
Result<RunResumption> find_resumption(const RunFiles& files, VectorFormat format,
                                      const RunIdentity& identity);

/// Gives whole parts their final names, vectors last, and removes the journal, which has said so:
/// ended anywhere, it can be called again.
///
/// Errors: Corrupt when a part is gone; those of renaming.
Status publish(const RunFiles& files);

/// Removes the unfinished files and the journal; what has a final name stays.
void discard(const RunFiles& files);

/// The output of a run while it grows: vectors, index and journal, under their part names until
/// `finish`. After a failed call every call says the same, and nothing more is journalled.
///
/// Threads: not thread-safe; owned by the loop of the run.
class RunOutput {
 public:
  /// Begins or, with `resumption`, goes on.
  static Result<std::unique_ptr<RunOutput>> open(const RunFiles& files, VectorFormat format,
                                                 std::uint32_t dim, const RunIdentity& identity,
                                                 std::optional<RunResumption> resumption);

  /// Appends the next record's line, and its row unless the record is a bad one (`row` empty; [dim]
  /// float32). Sets `entry.row`.
  Status append(IndexEntry& entry, std::span<const float> row);

  /// Makes everything so far durable and journals it. `records_hash` is over all records consumed.
  Status commit(const std::string& records_hash);

  /// Commits, completes `record` (which says how the vectors were made, and `records_hash`) with
  /// what it tells of the files, writes it beside them, and gives all three their final names.
  Status finish(OutputRecord record);

  std::uint64_t record_count() const { return step_.record_count; }
  std::uint64_t row_count() const { return step_.row_count; }

  /// Records that a resumed run would find done.
  std::uint64_t durable_record_count() const { return durable_record_count_; }

  /// All is whole and durable, and the journal says so: at most the final names are missing.
  bool is_finished() const { return is_finished_; }

 private:
  RunOutput(const RunFiles& files, std::unique_ptr<VectorWriter> vectors, UniqueFd index,
            std::unique_ptr<RunJournal> journal, const RunStep& step, Hash128 whole_index_hash);

  Status append_record(IndexEntry& entry, std::span<const float> row);
  Status commit_step(const std::string& records_hash);
  Status flush_index();
  Status keep(Status outcome);

  const RunFiles files_;
  std::unique_ptr<VectorWriter> vectors_;
  UniqueFd index_;
  std::unique_ptr<RunJournal> journal_;
  RunStep step_;
  std::uint64_t durable_record_count_;
  bool is_finished_ = false;
  Status state_ = Done{};  // the first failure
  std::string index_buffer_;
  Hash128 index_hash_;        // of the index bytes since the last commit
  Hash128 whole_index_hash_;  // of all of them
};

}  // namespace muster
