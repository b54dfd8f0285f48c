// Lines are due by a plan, the last due time plus the interval, so the rhythm does not drift when a
// line is late; times that a stopped process missed are not made up. A line that cannot be written
// is lost rather than kept, since the next one brings newer figures. Only the first of a run of
// failures is reported.

#include "server/stats_writer.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/file.h"

namespace muster {
namespace {

constexpr std::uint64_t kRotateSize = 64U << 20U;

}  // namespace

Result<std::unique_ptr<StatsWriter>> StatsWriter::start(Options options, EventLoop& loop,
                                                        const Clock& clock) {
  // As the folder of the log is made: the one that a document's variables name is in no image.
  std::error_code code;
  const auto folder = options.file.parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, code);
  if (code) return system_error(folder.string(), "make", code.value());
  auto recorder = MUSTER_TRY(
      LineRecorder::open({.file = options.file, .rotate_size = kRotateSize, .keys = options.keys}));
  auto* writer = new StatsWriter(std::move(options), std::move(recorder), loop, clock);
  return std::unique_ptr<StatsWriter>(writer);
}

StatsWriter::StatsWriter(Options options, LineRecorder recorder, EventLoop& loop,
                         const Clock& clock)
    : options_(std::move(options)),
      recorder_(std::move(recorder)),
      clock_(clock),
      timer_(loop.timer([this] { write(); })),
      next_(clock.now()) {
  timer_->set(next_);
}

void StatsWriter::write() {
  const auto written = recorder_.write(options_.line() + "\n");
  if (!written) {
    ++lost_count_;
    if (!std::exchange(is_failing_, true) && options_.on_notice) {
      options_.on_notice(
          fmt::format("lines of the statistics file are lost: {}", written.error().message));
    }
  } else {
    is_failing_ = false;
  }
  // By the plan and not by when this one was late; what a stopped process missed is not made up.
  const auto now = clock_.now();
  next_ += options_.interval;
  if (next_ <= now) next_ = now + options_.interval;
  timer_->set(next_);
}

}  // namespace muster
