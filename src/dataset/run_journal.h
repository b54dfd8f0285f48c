#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster {

/// What must be the same for a run to go on: names and values, compared one by one, so that a
/// refusal can name the one that changed ("--max-length was 256 and is now 128").
using RunIdentity = std::vector<std::pair<std::string, std::string>>;

/// One durable step: everything up to here is in the part files.
struct RunStep {
  std::uint64_t record_count = 0;  // input records consumed, bad ones included
  std::uint64_t row_count = 0;     // vectors or replies written
  std::uint64_t vectors_size = 0;  // bytes of OUT.part
  std::uint64_t index_size = 0;    // bytes of the index part; 0 without one
  /// Hash128 over all records consumed.
  std::string records_hash = {};
  /// Hash128 over the rows that were appended to OUT.part since the step before.
  std::string vectors_hash = {};
  /// The same for the index part.
  std::string index_hash = {};
};

/// What a journal says, as it lies there.
struct JournalContent {
  RunIdentity identity;
  std::vector<RunStep> steps;
  /// All parts are whole and durable: nothing is left to do but to give them their final names.
  bool is_finished = false;
};

/// The value of the entry of that name; nullptr: there is none. Lives as long as the identity.
const std::string* value_in(const RunIdentity& identity, std::string_view name);

/// "--max-length was 256 and is now 128", for the first entry that differs; nullopt when both are
/// the same. `then` comes from a file, `now` does not.
std::optional<std::string> identity_difference(const RunIdentity& then, const RunIdentity& now);

/// 32 hexadecimal digits that are the same for identities that do not differ.
std::string identity_hash(const RunIdentity& identity);

/// The journal of a run, beside its output: a JSON line with the identity, a JSON line a step, and
/// one when the parts are whole, each ending in its own checksum and made durable before `append`
/// returns. A torn last line is dropped.
///
/// Threads: not thread-safe.
class RunJournal {
 public:
  /// Where a new journal is written until it is whole: what a killed process leaves there is
  /// written over by the next.
  static std::filesystem::path part_path_of(const std::filesystem::path& path);

  /// Starts a new journal at `path`, replacing an old one at once.
  static Result<std::unique_ptr<RunJournal>> create(const std::filesystem::path& path,
                                                    const RunIdentity& identity);

  /// Reads a journal and changes nothing.
  ///
  /// Errors: NotFound (no such run to resume); Corrupt; Unsupported for a journal of another
  /// version.
  static Result<JournalContent> read(const std::filesystem::path& path);

  struct Reopened {
    std::unique_ptr<RunJournal> journal;  // ready to append after `steps`
    std::vector<RunStep> steps;
  };

  /// Reads a journal to go on with it.
  ///
  /// Errors: those of `read`; InvalidArgument when `identity` differs, naming the first entry that
  /// does with both values.
  static Result<Reopened> reopen(const std::filesystem::path& path, const RunIdentity& identity);

  virtual ~RunJournal() = default;

  virtual Status append(const RunStep& step) = 0;

  /// The parts are whole and durable. The last line.
  virtual Status append_finished() = 0;

  /// Keeps only the first `count` steps (the rest did not match the part files).
  virtual Status truncate(std::size_t count) = 0;
};

/// The unfinished files that a journal speaks of.
struct RunParts {
  std::filesystem::path vectors;
  std::uint64_t vectors_header_size = 0;  // bytes before the first row: not in `vectors_hash`
  std::filesystem::path index;            // empty: a run without one
};

/// How many of `steps`, from the first on, the part files still hold. Reads both files once, in
/// bounded memory.
///
/// Errors: NotFound when a part file is gone, and those of reading.
Result<std::size_t> count_intact_steps(std::span<const RunStep> steps, const RunParts& parts);

}  // namespace muster
