// The lines of a running job are drawn over themselves: the cursor goes back to the first of them,
// and each is erased as it is written, so that nothing flickers and nothing is left at the end.
#include "terminal/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

// Between lines that stay: short at first, then as a log of a long job wants them.
constexpr Duration kFirstLineInterval = std::chrono::seconds(5);
constexpr Duration kLineIntervalMax = std::chrono::minutes(1);

// Source: ECMA-48: EL (to the end of the line), ED (to the end of the screen), CUU (up).
constexpr std::string_view kEraseLine = "\033[K";
constexpr std::string_view kEraseBelow = "\033[J";

// Columns of a text whose only escape sequences are styles, which end in "m".
std::size_t shown_width(const std::string& line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size();) {
    const auto escape = line.find('\033', at);
    plain += line.substr(at, escape - at);
    if (escape == std::string::npos) break;
    at = line.find('m', escape) + 1;
  }
  return display_width(plain);
}

}  // namespace

ProgressBar::ProgressBar(int fd, const TerminalInfo& terminal, const Clock& clock)
    : fd_(fd), terminal_(terminal), clock_(clock), line_interval_(kFirstLineInterval) {}

ProgressBar::~ProgressBar() { clear(); }

// Brings the cursor to the beginning of what is drawn. A terminal that has become narrower since
// then has wrapped the lines that no longer fit.
std::string ProgressBar::erasure(std::size_t width) const {
  if (drawn_.empty()) return {};
  std::size_t rows = 0;
  for (const auto columns : drawn_widths_) {
    rows += width < drawn_at_width_ && columns > 0 ? (columns + width - 1) / width : 1;
  }
  return rows > 1 ? fmt::format("\r\033[{}A", rows - 1) : "\r";
}

void ProgressBar::update(ProgressReading reading) {
  const auto now = clock_.now();
  const auto view = meter_.add(now, std::move(reading));
  if (!terminal_.can_redraw) {
    if (!last_line_) last_line_ = now;  // the first line comes after one interval, with speeds
    if (now - *last_line_ < line_interval_) return;
    last_line_ = now;
    line_interval_ = std::min(2 * line_interval_, kLineIntervalMax);
    write("muster: " + describe_progress(view) + "\n");
    return;
  }
  // The size is asked anew: windows are resized. One column stays free, lest a line wrap.
  auto terminal = terminal_;
  const auto size = inspect_terminal(fd_);
  if (size.is_terminal) terminal.height = size.height;
  const auto width = size.is_terminal ? size.width : terminal_.width;
  terminal.width = width - 1;
  auto lines = render_progress(view, terminal);
  if (lines == drawn_ && width == drawn_at_width_) return;
  auto text = erasure(width);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += fmt::format("{}{}{}", i == 0 ? "" : "\n", lines[i], kEraseLine);
  }
  if (lines.size() < drawn_.size() || width < drawn_at_width_) text += kEraseBelow;
  drawn_widths_.clear();
  for (const auto& line : lines) drawn_widths_.push_back(shown_width(line));
  drawn_ = std::move(lines);
  drawn_at_width_ = width;
  write(text);
}

void ProgressBar::notice(std::string_view sentence) {
  auto text = erasure(drawn_at_width_) + (drawn_.empty() ? "" : std::string(kEraseBelow));
  const auto size = inspect_terminal(fd_);
  const auto width = size.is_terminal ? size.width : terminal_.width;
  text += wrapped_where_wider(
      sentence,
      {.width = terminal_.is_terminal ? width : kUnboundedWidth, .head = "muster: ", .indent = 2});
  for (std::size_t i = 0; i < drawn_.size(); ++i) text += (i == 0 ? "" : "\n") + drawn_[i];
  write(text);
}

void ProgressBar::clear() {
  if (!drawn_.empty()) write(erasure(drawn_at_width_) + std::string(kEraseBelow));
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
