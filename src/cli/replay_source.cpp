// A recording is mapped and its lines are found once; a line is parsed when it is shown. Trends
// need the minute before the moment that is shown, so a window of parsed moments moves along with
// it: stepping on reads one line, jumping reads the window anew. The last line counts only with its
// line end, because the recorder may be writing it.

#include "cli/replay_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "telemetry/recording.h"

namespace muster {
namespace {

// What trends look back at, and a little more, so that the oldest second has a reading before it.
constexpr Duration kKept = std::chrono::seconds(kTrendSeconds + 5);
constexpr std::uint32_t kSpeedMost = 64;
// A recording may have gaps, and may be faster than a screen.
constexpr Duration kStayLeast = std::chrono::milliseconds(20);
constexpr Duration kStayMost = std::chrono::seconds(2);

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (end > 0) lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;  // what has no line end is being written, or was cut off
}

}  // namespace

ReplaySource::ReplaySource(std::filesystem::path path, MappedFile file)
    : path_(std::move(path)), file_(std::move(file)) {
  lines_ = lines_of(file_.text());
}

Result<std::unique_ptr<ReplaySource>> ReplaySource::open(const std::filesystem::path& path) {
  auto file = MUSTER_TRY(MappedFile::open(path));
  auto source = std::unique_ptr<ReplaySource>(new ReplaySource(path, std::move(file)));
  if (source->lines_.empty()) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("{}: no whole line in it: record with `muster monitor --out`", path.string())};
  }
  return source;
}

Result<ReplaySource::Moment> ReplaySource::read_moment(std::size_t index) const {
  auto snapshot = read_recording_line(lines_[index]);
  if (snapshot) return Moment{index, std::move(*snapshot)};
  return Error{snapshot.error().kind,
               fmt::format("{}:{}: {}", path_.string(), index + 1, snapshot.error().message)};
}

// The window is a run of lines without gaps that ends at the index. It is kept where it touches the
// new place and dropped where it does not.
Status ReplaySource::keep_minute_before_index() {
  while (!kept_.empty() && kept_.back().index > index_) kept_.pop_back();
  if (kept_.empty() || kept_.back().index + 1 < index_) kept_.clear();
  if (kept_.empty() || kept_.back().index < index_) {
    kept_.push_back(MUSTER_TRY(read_moment(index_)));
  }
  const auto oldest = kept_.back().snapshot.at - kKept;
  while (kept_.front().index > 0 && kept_.front().snapshot.at >= oldest) {
    kept_.push_front(MUSTER_TRY(read_moment(kept_.front().index - 1)));
  }
  // One older than all stays, so that nothing is read twice.
  while (kept_.size() > 2 && kept_[1].snapshot.at < oldest) kept_.pop_front();
  return Done{};
}

std::vector<HistoryPoint> ReplaySource::history(std::uint32_t device, Reading reading,
                                                Duration since) const {
  std::vector<HistoryPoint> points;
  const auto oldest = kept_.back().snapshot.at - since;
  for (const auto& moment : kept_) {
    const auto& snapshot = moment.snapshot;
    if (snapshot.at < oldest || device >= snapshot.devices.size()) continue;
    if (const auto value = snapshot.devices[device].readings.get(reading)) {
      points.push_back({snapshot.at, *value});
    }
  }
  return points;
}

Result<std::optional<TopData>> ReplaySource::frame() {
  if (is_playing_ && goes_on_ && !is_at_end()) ++index_;
  if (is_at_end()) is_playing_ = false;
  goes_on_ = true;
  MUSTER_TRY(keep_minute_before_index());
  TopData data;
  data.snapshot = kept_.back().snapshot;
  data.trends =
      find_trends(data.snapshot, [this](std::uint32_t device, Reading reading, Duration since) {
        return history(device, reading, since);
      });
  const auto before = std::find_if(kept_.begin(), kept_.end(), [&](const Moment& moment) {
    return moment.snapshot.at >= data.snapshot.at - kCostWindow;
  });
  data.sampler_cores = sampler_cores(before->snapshot, data.snapshot);
  data.clock = clock_text(data.snapshot.unix_seconds);
  data.replay = ReplayPlace{index_, lines_.size(), is_playing_, speed_};
  return std::optional(std::move(data));
}

// The recording's own gap, made shorter by the speed and kept within what a screen and a person can
// take.
Duration ReplaySource::interval() const {
  if (!is_playing_ || kept_.size() < 2) return kStayMost;
  const auto gap = kept_.back().snapshot.at - kept_[kept_.size() - 2].snapshot.at;
  return std::clamp(gap / speed_, kStayLeast, kStayMost);
}

void ReplaySource::take(TopRequestKind kind) {
  goes_on_ = false;
  switch (kind) {
    case TopRequestKind::StepBack:
      is_playing_ = false;
      if (index_ > 0) --index_;
      break;
    case TopRequestKind::StepOn:
      is_playing_ = false;
      if (!is_at_end()) ++index_;
      break;
    case TopRequestKind::PlayOrStop:
      if (is_at_end()) index_ = 0;  // once more
      is_playing_ = !is_playing_;
      break;
    case TopRequestKind::Faster:
      speed_ = std::min(speed_ * 2, kSpeedMost);
      break;
    case TopRequestKind::Slower:
      speed_ = std::max(speed_ / 2, 1U);
      break;
    case TopRequestKind::None:
    case TopRequestKind::Quit:
    case TopRequestKind::EndProcess:
    case TopRequestKind::KillProcess:
      break;
  }
}

std::optional<std::string> ReplaySource::signal_refusal() const {
  return "these processes are recorded ones";
}

}  // namespace muster
