// spdlog does rotation and files; this adds a file for each device and a count of lines that could
// not be written. A log that cannot be written must not stop a server, but it must be known.

#include "log/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <set>
#include <system_error>

#include "base/mutex.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::int64_t unix_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::string file_name(std::string_view device) {
  if (device.empty()) return "muster.log";
  auto name = fmt::format("worker-{}.log", device);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ':' || c == '/'; }, '-');
  return name;
}

// The one adapter of spdlog: its sinks write and rotate; which line goes where, and how it looks,
// is decided here. Its exceptions end here.
class SpdlogLog final : public Log {
 public:
  explicit SpdlogLog(const LogOptions& options) : options_(options), level_(options.level) {}

  // The sink of muster.log or of standard error, so that what is wrong is known at the start.
  Status open_first() {
    const MutexLock lock(mutex_);
    return open_sinks();
  }

  void write(const LogLine& line) override {
    if (line.level == LogLevel::Off || line.level < level_.load(std::memory_order_relaxed)) return;
    const auto now = unix_ms();
    const auto text =
        options_.format == LogFormat::Json ? json_line(line, now) : text_line(line, now);
    const MutexLock lock(mutex_);
    const std::string device(options_.folder.empty() ? std::string_view{} : line.device);
    if (sinks_.find(device) == sinks_.end()) {
      const auto opened = open_sink(device);
      if (!opened) return lose(opened.error().message);
    }
    auto& sink = *sinks_.at(device);
    try {
      if (gap_ > 0) {
        const auto missing = fmt::format("{} lines of the log were lost before this", gap_);
        const LogLine gap{.level = LogLevel::Warning, .message = missing};
        const auto told =
            options_.format == LogFormat::Json ? json_line(gap, now) : text_line(gap, now);
        log(sink, torn_.contains(device) ? "\n" + told : told);
        torn_.erase(device);
        gap_ = 0;
      }
      log(sink, text);
    } catch (const std::exception& error) {
      torn_.insert(device);
      lose(error.what());
    }
  }

  void set_level(LogLevel level) override { level_ = level; }
  LogLevel level() const override { return level_; }
  std::uint64_t lost_count() const override { return lost_count_; }

  Status reopen() override {
    const MutexLock lock(mutex_);
    sinks_.clear();
    torn_.clear();
    return open_sinks();
  }

 private:
  static void log(spdlog::sinks::sink& sink, const std::string& text) {
    sink.log(spdlog::details::log_msg("", spdlog::level::info, text));
    sink.flush();
  }

  Status open_sinks() MUSTER_REQUIRES(mutex_) {
    MUSTER_TRY(open_sink(""));
    if (options_.folder.empty()) return Done{};
    for (const auto& device : options_.devices) MUSTER_TRY(open_sink(device));
    return Done{};
  }

  Status open_sink(const std::string& device) MUSTER_REQUIRES(mutex_) {
    try {
      std::shared_ptr<spdlog::sinks::sink> sink;
      if (options_.folder.empty()) {
        sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
      } else {
        sink = std::make_shared<spdlog::sinks::rotating_file_sink_st>(
            (options_.folder / file_name(device)).string(), options_.rotate_size,
            options_.rotate_keep);
      }
      sink->set_pattern("%v");
      sinks_[device] = std::move(sink);
      return Done{};
    } catch (const std::exception& error) {
      return Error{ErrorKind::InvalidArgument, fmt::format("log: {}", error.what())};
    }
  }

  void lose(const std::string& reason) MUSTER_REQUIRES(mutex_) {
    lost_count_.fetch_add(1);
    if (gap_++ > 0) return;
    fmt::print(stderr, "muster: lines of the log are lost: {}\n", reason);
  }

  const LogOptions options_;
  std::atomic<LogLevel> level_;
  std::atomic<std::uint64_t> lost_count_{0};
  mutable Mutex mutex_;
  std::uint64_t gap_ MUSTER_GUARDED_BY(mutex_) = 0;  // lines lost since one was written
  // Whose last line may have been written in part: the next one begins behind its end.
  std::set<std::string> torn_ MUSTER_GUARDED_BY(mutex_);
  // By device; "": all lines about none.
  std::map<std::string, std::shared_ptr<spdlog::sinks::sink>> sinks_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Log>> Log::open(const LogOptions& options) {
  if (!options.folder.empty()) {
    std::error_code code;
    fs::create_directories(options.folder, code);
    if (code) return system_error(options.folder.string(), "make the folder", code.value());
  }
  auto log = std::make_unique<SpdlogLog>(options);
  MUSTER_TRY(log->open_first());
  return std::unique_ptr<Log>(std::move(log));
}

}  // namespace muster
