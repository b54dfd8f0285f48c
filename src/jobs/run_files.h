#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "dataset/output_record.h"
#include "dataset/run_journal.h"

namespace muster {

/// The names of one run's files: OUT and what lies beside it, and what they are called until they
/// are whole. Replies have no index, whose names are empty then.
struct RunFiles {
  explicit RunFiles(const std::filesystem::path& out, OutputKind kind = OutputKind::Vectors);

  OutputKind kind;
  std::filesystem::path out;           // x.npy
  std::filesystem::path index;         // x.npy.index.jsonl
  std::filesystem::path about;         // x.npy.run.json
  std::filesystem::path out_part;      // x.npy.part
  std::filesystem::path index_part;    // x.npy.index.jsonl.part
  std::filesystem::path about_part;    // x.npy.run.json.part
  std::filesystem::path journal;       // x.npy.journal
  std::filesystem::path journal_part;  // x.npy.journal.part
  std::filesystem::path ahead;         // x.npy.ahead
  std::filesystem::path ahead_part;    // x.jsonl.ahead.part, of replies alone
  std::filesystem::path lock;          // x.npy.lock

  /// Those that there are.
  std::vector<std::filesystem::path> all() const;
};

/// Where an interrupted run can go on: its journal, cut to the steps whose bytes are really there.
struct RunResumption {
  std::unique_ptr<RunJournal> journal;
  RunStep last;  // zero counts when nothing was done yet
};

/// Reads the journal of an interrupted run and checks the part files against it, step by step.
///
/// header_size: bytes of OUT before the first result. Errors: those of RunJournal::reopen and of
/// reading the part files; Corrupt when a part that the journal speaks of is gone.
Result<RunResumption> find_resumption(const RunFiles& files, std::uint64_t header_size,
                                      const RunIdentity& identity);

/// Gives whole parts their final names, OUT last, and removes what is ahead and the journal, which
/// has said so: ended anywhere, it can be called again.
///
/// Errors: Corrupt when a part is gone; those of renaming.
Status publish(const RunFiles& files);

/// Removes the unfinished files, what is ahead and the journal; what has a final name stays.
void discard(const RunFiles& files);

}  // namespace muster
