#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "jobs/records_ahead.h"
#include "jobs/run_files.h"

namespace muster {

/// A reply that came before its turn.
struct AheadReply {
  std::string content_hash;  // Hash128 of the record, as hash_record has it
  std::uint32_t prompt_token_count = 0;
  std::uint32_t reply_token_count = 0;
  std::string members;  // reply_members
};

/// Replies ahead of their turn, in `x.jsonl.ahead`: a line that says whose they are, and a line for
/// each, every one with its own checksum. The file is replaced whole, so that it is sound at any
/// moment; it is written only where a reply has come that it lacks. What it holds is kept in memory
/// as well, and is no more than a window of records can hold.
///
/// Threads: not thread-safe; owned by the loop of the run. Source: docs/formats/replies.md.
class RepliesAhead final : public RecordsAhead {
 public:
  /// run: identity_hash of the run whose replies they are.
  RepliesAhead(const RunFiles& files, std::string run);

  /// Goes on with the replies that an interrupted run has left, from record `record_count` on.
  /// Those of another run, and a file that is missing or damaged, count for nothing.
  ///
  /// Errors: those of reading; Unsupported for a file of another version.
  static Result<std::unique_ptr<RepliesAhead>> reopen(const RunFiles& files, std::string run,
                                                      std::uint64_t record_count);

  bool take(WindowRecord& record) override;
  Status keep(std::uint64_t durable_count, std::span<const WindowRecord* const> waiting) override;
  std::uint64_t durable_count() const override { return in_file_.size(); }

 private:
  Status write() const;

  const std::filesystem::path path_;
  const std::filesystem::path part_;  // until it is whole
  const std::string run_;
  std::map<std::uint64_t, AheadReply> replies_;  // by the number of their record
  std::set<std::uint64_t> in_file_;              // those of them that are there
};

/// How many records from `record_count` on have a reply in the file at `path`, as a resumed run
/// would find them; none where there is no file.
///
/// Errors: those of RepliesAhead::reopen.
Result<std::uint64_t> count_ahead_replies(const std::filesystem::path& path, const std::string& run,
                                          std::uint64_t record_count);

}  // namespace muster
