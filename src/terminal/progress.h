#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster {

/// Something that is counted while a job runs: {"texts", 1200}.
struct ProgressCount {
  std::string unit;
  std::uint64_t count = 0;
};

/// A job at one moment, as its owner knows it.
struct ProgressReading {
  std::optional<double> fraction;  // 0..1; nullopt: nobody knows how much there is
  std::vector<ProgressCount>
      counts;  // the same units in every reading; the first is also shown as a sum
  std::vector<std::string> devices;  // "cpu:0", "cpu:1 restarting"
};

/// What is drawn: a reading with the speeds that follow from those before it.
struct ProgressView {
  ProgressReading reading;
  std::vector<double> rates_per_second;     // as reading.counts
  std::optional<double> remaining_seconds;  // nullopt: too early, or the whole is not known
};

/// Turns readings into speeds over the last few seconds.
///
/// Threads: not thread-safe.
class ProgressMeter {
 public:
  ProgressView add(TimePoint now, ProgressReading reading);

 private:
  struct Sample {
    TimePoint time;
    ProgressReading reading;
  };
  std::deque<Sample> samples_;  // oldest first, spanning about kWindow
};

/// One line for a terminal, at most `width` columns: bar, per cent, counts, speeds, time left,
/// devices. What does not fit is left out from the right.
std::string render_progress(const ProgressView& view, std::size_t width, bool has_color);

/// The same as words for a log: "42 %, 1,200 texts, 600 texts/s, 4,000 tokens/s, ETA 0:12".
std::string describe_progress(const ProgressView& view);

/// "0:07", "12:34", "1:02:03"; rounded up.
std::string format_duration(double seconds);

}  // namespace muster
