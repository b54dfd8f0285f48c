#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace muster {

/// What became of one request. No text of a caller is among it, and no key.
struct AuditEntry {
  double unix_seconds = 0;  // when it came
  std::string request_id;
  std::string key_name;     // empty: without keys, or refused before one was known
  std::string client_name;  // of a verified client certificate
  std::string peer;         // "127.0.0.1:51234", "unix:1000"
  std::string method;
  std::string path;  // without what stands after '?'
  std::string model;
  std::optional<std::uint64_t> text_count{};
  std::optional<std::uint64_t> token_count{};
  int status = 0;
  double milliseconds = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::string reason;  // of a refusal: the fixed sentence, never the caller's words
};

/// The line of an entry, its end included; docs/formats/audit-log.md has the form. Of path, model
/// and what else comes from outside at most 256 bytes stand there.
///
/// dropped_count: lines that had to be left out right before this one. Threads: pure.
std::string audit_line(const AuditEntry& entry, std::uint64_t dropped_count);

struct AuditStatus {
  std::uint64_t written_count = 0;
  std::uint64_t dropped_count = 0;  // the queue was full, or the disk
  std::optional<Error> last_error;  // why lines are lost; nullopt again after a good write
};

/// A line for each request, in JSON, in a file that its owner alone may read.
///
/// A thread of its own writes; whoever tells it an entry never waits for a disk, and its end waits
/// no longer than kEndTime for a pipe that nobody empties. The file is opened again when its name
/// leads elsewhere, so that it can be renamed away at any time, and after an error.
///
/// Threads: `write` and `status` are thread-safe.
class AuditLog {
 public:
  static constexpr std::size_t kQueueCapacity = 8192;
  static constexpr auto kEndTime = std::chrono::milliseconds(500);

  /// Told on the log's own thread when lines begin to be lost (why) and when they are written again
  /// (nullopt, and how many were lost).
  using OnChange = std::function<void(const std::optional<Error>&, std::uint64_t lost_count)>;

  /// Errors: those of the system; Unavailable for a pipe that nobody reads.
  static Result<std::unique_ptr<AuditLog>> open(const std::filesystem::path& path,
                                                OnChange on_change = {});

  /// Writes what is left, as far as it is taken.
  virtual ~AuditLog() = default;

  virtual void write(AuditEntry entry) = 0;

  /// Waits until all that was given is written or dropped. It may wait for a disk.
  virtual void flush() = 0;

  virtual AuditStatus status() const = 0;
};

}  // namespace muster
