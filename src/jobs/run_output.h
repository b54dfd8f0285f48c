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
#include "jobs/durable_steps.h"
#include "jobs/embed_output.h"

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
  std::filesystem::path ahead;         // x.npy.ahead
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

/// Gives whole parts their final names, vectors last, and removes the rows ahead and the journal,
/// which has said so: ended anywhere, it can be called again.
///
/// Errors: Corrupt when a part is gone; those of renaming.
Status publish(const RunFiles& files);

/// Removes the unfinished files, the rows ahead and the journal; what has a final name stays.
void discard(const RunFiles& files);

/// How the rows of a run are written.
struct RowShape {
  VectorFormat format = VectorFormat::Npy;
  std::uint32_t dim = 0;
  bool has_objects = false;  // Jsonl: a line is an object with id and kept fields, too
};

/// The output of a run while it grows: vectors, index and journal, under their part names until
/// `finish`. After a failed call every call says the same, and nothing more is journalled.
///
/// Threads: not thread-safe; one at a time, the loop of the run or its writer.
class RunOutput final : public EmbedOutput {
 public:
  /// Begins, which drops the rows ahead of an earlier run, or goes on with `resumption`.
  static Result<std::unique_ptr<RunOutput>> open(const RunFiles& files, const RowShape& shape,
                                                 const RunIdentity& identity,
                                                 std::optional<RunResumption> resumption);

  Status append(IndexEntry& entry, std::span<const float> row) override;

  /// Makes everything so far durable and journals it.
  Status commit(const std::string& records_hash) override;
  Status begin_commit(const std::string& records_hash) override;

  /// Commits, completes `record` (which says how the vectors were made, and `records_hash`) with
  /// what it tells of the files, writes it beside them, and gives all three their final names.
  ///
  /// Errors: those of check_none_foreign, and the names are not given; those of writing.
  Status finish(OutputRecord record) override;

  std::uint64_t record_count() const { return step_.record_count; }
  std::uint64_t row_count() const { return step_.row_count; }

  std::uint64_t durable_record_count() const override { return durable_record_count_; }
  bool is_finished() const override { return is_finished_; }

 private:
  RunOutput(const RunFiles& files, bool has_objects, std::unique_ptr<VectorWriter> vectors,
            UniqueFd index, std::unique_ptr<RunJournal> journal, const RunStep& step,
            Hash128 whole_index_hash);

  Status append_record(IndexEntry& entry, std::span<const float> row);
  Status append_row(const IndexEntry& entry, std::span<const float> row);
  Status begin_step(const std::string& records_hash);
  Status settle(std::optional<Result<RunStep>> outcome);
  Status make_durable(const RunStep& step);
  Status flush_index();
  Status keep(Status outcome);

  const RunFiles files_;
  const bool has_objects_;
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
  DurableSteps steps_;        // the last member: its thread uses the others
};

}  // namespace muster
