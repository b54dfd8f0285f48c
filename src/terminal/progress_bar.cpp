#include "terminal/progress_bar.h"

#include <unistd.h>

#include <cerrno>

#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr auto kLineInterval = std::chrono::seconds(5);
constexpr std::string_view kEraseLine = "\r\033[K";

}  // namespace

ProgressBar::ProgressBar(int fd, const TerminalInfo& terminal, const Clock& clock)
    : fd_(fd), terminal_(terminal), clock_(clock) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(ProgressReading reading) {
  const auto now = clock_.now();
  const auto view = meter_.add(now, std::move(reading));
  if (!terminal_.is_terminal) {
    if (!last_line_) last_line_ = now;  // the first line comes after one interval, with speeds
    if (now - *last_line_ < kLineInterval) return;
    last_line_ = now;
    write("muster: " + describe_progress(view) + "\n");
    return;
  }
  // The size is asked anew: windows are resized. One column stays free, lest the line wrap.
  const auto width = inspect_terminal(fd_).width;
  auto line = render_progress(view, width - 1, terminal_.has_color);
  if (line == drawn_) return;
  drawn_ = std::move(line);
  write(std::string(kEraseLine) + drawn_);
}

void ProgressBar::notice(std::string_view sentence) {
  const auto line = "muster: " + printable(sentence) + "\n";
  write(drawn_.empty() ? line : std::string(kEraseLine) + line + drawn_);
}

void ProgressBar::clear() {
  if (!drawn_.empty()) write(kEraseLine);
  drawn_.clear();
}

void ProgressBar::write(std::string_view text) const {
  while (!text.empty()) {
    const auto count = ::write(fd_, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace muster
