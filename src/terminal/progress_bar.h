#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "terminal/progress.h"
#include "terminal/terminal_info.h"

namespace muster {

/// Shows a running job: a line that is redrawn on a terminal, a line about every five seconds
/// elsewhere. What cannot be written is dropped: progress is never worth a job.
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

  /// A line of its own that stays above the bar.
  void notice(std::string_view sentence);

  /// Takes the bar away, for what is printed next.
  void clear();

 private:
  void write(std::string_view text) const;

  const int fd_;
  const TerminalInfo terminal_;
  const Clock& clock_;
  ProgressMeter meter_;
  std::string drawn_;  // what stands on the terminal's last line
  std::optional<TimePoint> last_line_;
};

}  // namespace muster
