// Workers answer in any order and report no beginnings. Which frames run follows from the order in
// which they were sent: a worker gives the oldest one to the lane that is free first.

#include "coordinator/sent_frames.h"

#include <algorithm>
#include <utility>

namespace muster {

void SentFrames::push(SentFrame frame, TimePoint now) {
  frames_.push_back(std::move(frame));
  start_running(now);
}

std::optional<SentFrame> SentFrames::take(std::uint64_t id, TimePoint now) {
  const auto found = std::find_if(frames_.begin(), frames_.end(),
                                  [id](const SentFrame& frame) { return frame.id == id; });
  if (found == frames_.end()) return std::nullopt;
  auto frame = std::move(*found);
  frames_.erase(found);
  start_running(now);
  return frame;
}

void SentFrames::restart_clocks(TimePoint now) {
  for (auto& frame : frames_) {
    if (frame.running_since) frame.running_since = now;
    frame.extension_count = 0;
  }
}

void SentFrames::extend(std::uint64_t id) {
  for (auto& frame : frames_) {
    if (frame.id == id) ++frame.extension_count;
  }
}

void SentFrames::excuse(TimePoint since, TimePoint now) {
  for (auto& frame : frames_) {
    auto& running = frame.running_since;
    if (running) *running += now - std::max(*running, since);
  }
}

const SentFrame* SentFrames::find(std::uint64_t id) const {
  const auto found = std::find_if(frames_.begin(), frames_.end(),
                                  [id](const SentFrame& frame) { return frame.id == id; });
  return found == frames_.end() ? nullptr : &*found;
}

bool SentFrames::has(ModelId model) const {
  return std::any_of(frames_.begin(), frames_.end(),
                     [model](const SentFrame& frame) { return frame.model == model; });
}

bool SentFrames::has_canary(ModelId model) const {
  return std::any_of(frames_.begin(), frames_.end(), [model](const SentFrame& frame) {
    return frame.kind == FrameKind::Canary && frame.model == model;
  });
}

std::vector<std::uint64_t> SentFrames::running() const {
  std::vector<std::uint64_t> ids;
  for (const auto& frame : frames_) {
    if (ids.size() == lane_count_) break;
    ids.push_back(frame.id);
  }
  return ids;
}

Duration SentFrames::running_for(TimePoint now) const {
  if (frames_.empty() || !frames_.front().running_since) return Duration{0};
  return now - *frames_.front().running_since;
}

void SentFrames::start_running(TimePoint now) {
  const auto running = std::min<std::size_t>(lane_count_, frames_.size());
  for (std::size_t i = 0; i < running; ++i) {
    auto& since = frames_[i].running_since;
    if (!since) since = now;
  }
}

}  // namespace muster
