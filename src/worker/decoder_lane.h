#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "scheduler/steps.h"
#include "spec/device.h"
#include "wire/generation_messages.h"

namespace muster {

/// What a DecoderLane answers, from its own thread.
struct DecoderLaneEvents {
  std::function<void(const DecoderReady&)> on_ready;
  std::function<void(const Error&)> on_load_failed;
  std::function<void(std::uint32_t token_count)> on_step_begun;  // as GenerationEvents's
  std::function<void(const CacheUse&)> on_cache_use;             // the same
  std::function<void(const Tokens&)> on_tokens;                  // of a step; may be none
  std::function<void(SequenceId, FinishReason)> on_finished;
  std::function<void(SequenceId, const Error&)> on_failed;
  std::function<void(const Error&)> on_broken;   // as GenerationEvents's; it does not return
  std::function<void(SequenceId)> on_cancelled;  // for each `cancel`; nothing of it comes behind
};

/// A thread that loads one decoder and generates with it, on a CPU together with a helper for each
/// further core. Between two steps it takes in what was asked for and cancelled meanwhile; without
/// a sequence it sleeps.
///
/// Threads: `generate` and `cancel` by one thread, the worker's reader.
class DecoderLane {
 public:
  DecoderLane(LoadDecoder load, DeviceKind device, DecoderLaneEvents events);
  /// Waits for the step that is being computed, not for the sequences.
  ~DecoderLane();

  /// What was asked for before the decoder is loaded waits for it; where it cannot be loaded, every
  /// sequence fails.
  void generate(SequenceId id, Generate request);
  /// One that is not computed yet is let go of at once.
  void cancel(SequenceId id);

 private:
  /// A request, or without one a cancellation.
  struct Order {
    SequenceId id = 0;
    std::optional<Generate> request;
  };

  void run();
  void serve(class Generation& generation);
  std::deque<Order> take_orders(bool may_wait);
  void push(Order order);

  const LoadDecoder load_;
  const DeviceKind device_;
  const DecoderLaneEvents events_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order> orders_;  // guarded by mutex_
  bool is_ending_ = false;    // guarded by mutex_
  std::jthread thread_;       // the last member: it ends first
};

}  // namespace muster
