#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "log/log_line.h"

namespace muster {

enum class LogFormat : std::uint8_t { Text, Json };

struct LogOptions {
  LogLevel level = LogLevel::Info;
  LogFormat format = LogFormat::Text;
  std::filesystem::path folder = {};       // empty: all to standard error
  std::vector<std::string> devices = {};   // whose files are there from the start, still empty
  std::uint64_t rotate_size = 64U << 20U;  // bytes after which a new file is begun
  std::uint32_t rotate_keep = 5;           // older files: muster.1.log is the newest of them
};

/// The log of a program that runs long: `muster.log` and a `worker-cuda-0.log` for each device, or
/// standard error. Each line is flushed as it is written.
///
/// A line that cannot be written is counted; the first one is told on standard error. Writing goes
/// on with the next line, so that a disk that has room again gets what comes then, after a line
/// that says how many are missing.
///
/// Threads: thread-safe.
class Log {
 public:
  /// Makes the folder where it is missing.
  ///
  /// Errors: those of the system (no permission, a file in the folder's place).
  static Result<std::unique_ptr<Log>> open(const LogOptions& options);
  virtual ~Log() = default;

  /// Writes the line if its level is worth it: to its device's file if it has one, else to
  /// muster.log. Never Off.
  virtual void write(const LogLine& line) = 0;

  virtual void set_level(LogLevel level) = 0;
  virtual LogLevel level() const = 0;

  /// Lines that could not be written.
  virtual std::uint64_t lost_count() const = 0;

  /// Opens all files anew, for a program that has moved them away.
  virtual Status reopen() = 0;
};

}  // namespace muster
