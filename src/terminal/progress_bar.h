#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "terminal/progress.h"
#include "terminal/terminal_info.h"

namespace muster {

/// Shows a running job: lines that are redrawn where a terminal can move its cursor; elsewhere a
/// line after five seconds, ten more, twenty more and so on, then one a minute. What cannot be
/// written is dropped: progress is never worth a job.
///
/// Threads: not thread-safe; owned by the job's loop.
class ProgressBar {
 public:
  /// fd: usually standard error; it must outlive this. clock: the same.
  ProgressBar(int fd, const TerminalInfo& terminal, const Clock& clock);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();  // as `clear`

  void update(ProgressReading reading);

  /// A line of its own that stays above the bar; on a terminal several where it is long.
  void notice(std::string_view sentence);

  /// Takes the bar away, for what is printed next.
  void clear();

 private:
  std::string erasure(std::size_t width) const;
  void write(std::string_view text) const;

  const int fd_;
  const TerminalInfo terminal_;
  const Clock& clock_;
  ProgressMeter meter_;
  std::vector<std::string> drawn_;         // the terminal's last lines; the cursor is behind them
  std::vector<std::size_t> drawn_widths_;  // their columns
  std::size_t drawn_at_width_ = 0;         // columns of the terminal then
  std::optional<TimePoint> last_line_;
  Duration line_interval_;
};

}  // namespace muster
