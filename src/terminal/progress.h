#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "terminal/terminal_info.h"
#include "terminal/time_left.h"

namespace muster {

/// Something that is counted while a job runs: {"texts", 1200}.
struct ProgressCount {
  std::string unit;
  std::uint64_t count = 0;
};

/// Who works on the job: a line of its own where there are several and room for them.
struct ProgressLane {
  std::string name;         // "cpu:1"
  std::uint64_t count = 0;  // its part of the first of the job's counts
  std::string state;        // "restarting"; empty: it works
};

/// A job at one moment, as its owner knows it.
struct ProgressReading {
  std::optional<double> fraction;  // 0..1; nullopt: nobody knows how much there is
  std::vector<ProgressCount>
      counts;  // the same units in every reading; the first is also shown as a sum
  std::vector<ProgressLane> lanes;   // the same in every reading, or none yet
  std::vector<std::string> remarks;  // "file 2 of 5"
  std::string phase;                 // "loading the model": before anything is counted
};

/// What is drawn: a reading with the speeds that follow from those before it.
struct ProgressView {
  ProgressReading reading;                  // its fraction never falls
  std::vector<double> rates_per_second;     // as reading.counts; empty: too early
  std::vector<double> lane_rates;           // as reading.lanes; empty: too early
  std::optional<double> remaining_seconds;  // nullopt: too early, or the whole is not known
  double elapsed_seconds = 0;               // since the first reading
};

/// Turns readings into speeds over the last few seconds, and an estimate of the time left.
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
  std::optional<TimePoint> begin_;
  double fraction_ = 0;  // the highest so far
  TimeLeft time_left_;
};

/// What a terminal has room for: a line for each lane where there are several, and the bar of the
/// whole below them; on a screen that is low or narrow the last one alone. While there is a phase,
/// it stands in the place of bar and speeds. No line is wider than `terminal.width`; what does not
/// fit is left out from the right.
std::vector<std::string> render_progress(const ProgressView& view, const TerminalInfo& terminal);

/// The same as words for a log: "42 %, 1,200 texts, 600 texts/s, 4,000 tokens/s, ETA 0:12".
std::string describe_progress(const ProgressView& view);

/// "0:07", "12:34", "1:02:03"; rounded up.
std::string format_duration(double seconds);

}  // namespace muster
