#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "dataset/run_journal.h"
#include "dataset/vector_file.h"
#include "dataset/vector_writer.h"

namespace muster {

/// The names of one run's files: OUT and its index, and what they are called until they are whole.
struct RunFiles {
  explicit RunFiles(const std::filesystem::path& out);

  std::filesystem::path out;         // x.npy
  std::filesystem::path index;       // x.index.jsonl
  std::filesystem::path about;       // x.run.json
  std::filesystem::path out_part;    // x.npy.part
  std::filesystem::path index_part;  // x.index.jsonl.part
  std::filesystem::path journal;     // x.npy.journal
};

/// Where an interrupted run can go on: its journal, cut to the steps whose bytes are really there.
struct RunResumption {
  std::unique_ptr<RunJournal> journal;
  RunStep last;  // zero counts when nothing was done yet
};

/// Reads the journal of an interrupted run and checks the part files against it, step by step.
///
/// Errors: those of RunJournal::reopen and of reading the part files.
Result<RunResumption> find_resumption(const RunFiles& files, VectorFormat format,
                                      const RunIdentity& identity);

/// The output of a run while it grows: vectors, index and journal, under their part names until
/// `finish`.
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

  /// Gives the files their final names, vectors last, writes `about`, and removes the journal.
  Status finish(const std::string& about);

  std::uint64_t record_count() const { return step_.record_count; }
  std::uint64_t row_count() const { return step_.row_count; }

 private:
  RunOutput(const RunFiles& files, std::unique_ptr<VectorWriter> vectors, UniqueFd index,
            std::unique_ptr<RunJournal> journal, const RunStep& step);

  Status flush_index();

  const RunFiles files_;
  std::unique_ptr<VectorWriter> vectors_;
  UniqueFd index_;
  std::unique_ptr<RunJournal> journal_;
  RunStep step_;
  std::string index_buffer_;
  Hash128 index_hash_;  // of the index bytes since the last commit
};

}  // namespace muster
