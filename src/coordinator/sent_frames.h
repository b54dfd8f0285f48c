#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "spec/serving.h"

namespace muster {

/// What a frame asks a worker group to compute.
enum class FrameKind : std::uint8_t {
  Batch,   // texts
  Canary,  // the one text whose vector is known (canary_book.h)
  Trial,   // copies of the canary's text, to learn what they cost (load_trial.h)
};

/// A frame that a worker group has been sent and has not answered.
struct SentFrame {
  std::uint64_t id = 0;
  FrameKind kind = FrameKind::Batch;
  ModelId model = 0;
  std::size_t text_count = 1;
  std::uint64_t token_count = 0;
  std::uint64_t longest_text = 0;  // tokens; 0: no longer than others
  TimePoint sent_at{};
  std::optional<TimePoint> running_since{};  // a lane is free for it
  std::uint32_t extension_count = 0;         // times that more time was allowed for it
};

/// The frames that one worker group has been sent and has not answered, oldest first. The first
/// `lane_count` of them are running, one in each lane; the others wait in the group, so that no
/// lane is idle between two.
///
/// Pure: time comes in as an argument. Threads: owned by the fleet's loop.
class SentFrames {
 public:
  /// The group's lanes, known when it has loaded a model; 1 before that. Frames that a lane has
  /// become free for count as running from the next `push` or `take`.
  void set_lane_count(std::uint32_t count) { lane_count_ = count; }
  std::uint32_t lane_count() const { return lane_count_; }

  void push(SentFrame frame, TimePoint now);

  /// The frame is answered. nullopt: none of this id is here.
  std::optional<SentFrame> take(std::uint64_t id, TimePoint now);

  /// The group has ended: no frame is answered any more.
  void clear() { frames_.clear(); }

  /// Running frames are judged as if they had begun now: they were held up by something else.
  void restart_clocks(TimePoint now);

  /// More time is allowed for a frame, until its clock is restarted.
  void extend(std::uint64_t id);

  /// Of the time that frames have been running, what lies between `since` and `now` does not count.
  void excuse(TimePoint since, TimePoint now);

  const std::deque<SentFrame>& all() const { return frames_; }
  bool empty() const { return frames_.empty(); }
  std::size_t size() const { return frames_.size(); }
  /// How many frames the group takes at a time: one running and one waiting in each lane.
  std::size_t size_most() const { return 2 * std::size_t{lane_count_}; }
  bool has_room() const { return size() < size_most(); }

  const SentFrame* find(std::uint64_t id) const;
  bool has(ModelId model) const;
  bool has_canary(ModelId model) const;

  /// The ids of those that run, oldest first.
  std::vector<std::uint64_t> running() const;

  /// How long the oldest one has been running; 0: none is.
  Duration running_for(TimePoint now) const;

 private:
  void start_running(TimePoint now);

  std::deque<SentFrame> frames_;
  std::uint32_t lane_count_ = 1;
};

}  // namespace muster
