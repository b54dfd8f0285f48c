#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "telemetry/line_recorder.h"

namespace muster {

/// The statistics file of a server: a line of JSON at once and then one every interval, each whole
/// whatever ends the server. After 64 MiB a new file is begun, and five older ones are kept.
///
/// A line that cannot be written is left out; the first of a row of them is told.
/// Threads: belongs to the loop's thread.
class StatsWriter {
 public:
  struct Options {
    std::filesystem::path file;
    Duration interval = std::chrono::seconds(60);
    std::function<std::string()> line;  // without its end
    /// Of every line: what is there already is gone on with only where its first line has them.
    std::vector<std::string> keys = {};
    std::function<void(const std::string&)> on_notice{};  // a sentence for people
  };

  /// Makes the file's folder where there is none.
  ///
  /// Errors: those of LineRecorder::open, and of the system for the folder.
  static Result<std::unique_ptr<StatsWriter>> start(Options options, EventLoop& loop,
                                                    const Clock& clock);

  /// Lines that could not be written.
  std::uint64_t lost_count() const { return lost_count_; }

 private:
  StatsWriter(Options options, LineRecorder recorder, EventLoop& loop, const Clock& clock);

  void write();

  Options options_;
  LineRecorder recorder_;
  const Clock& clock_;
  std::unique_ptr<EventLoop::Timer> timer_;
  TimePoint next_;
  std::uint64_t lost_count_ = 0;
  bool is_failing_ = false;
};

}  // namespace muster
