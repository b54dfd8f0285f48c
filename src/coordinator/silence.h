#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace muster {

/// A worker may be silent so long.
struct Silence {
  TimePoint since{};
  Duration allowed{};

  TimePoint until() const { return since + allowed; }
};

/// What is known of the cost of a batch, from the nearest source to the furthest.
struct BatchCost {
  std::optional<Duration> own{};     // predicted from the batches that this device has done
  std::optional<Duration> canary{};  // likewise, from this device's canaries alone
  std::optional<Duration> peer{};    // of the slowest other device of its class, from its batches
  std::uint64_t longest_text = 0;    // tokens; 0: no longer than those it is predicted from
  bool is_beside_load = false;       // the device loads another model at the same time
};

/// How long a worker may stay silent on a batch: five times what the batch is predicted to take.
/// Five, because a machine that is shared runs a batch at a third of its usual speed at worst, and
/// the lengths in a batch differ; and as much more for each 512 tokens of the longest text, since a
/// prediction is in proportion to tokens, of texts that were shorter. The least is
///   1 s where the device itself has done batches: an operating system's hiccups are shorter;
///   2 s where only its canaries are known: the first large batch takes memory and fills caches;
///   5 s where only a device of the same class is known: the first one also loads kernels;
///   10 s beside the loading of another model, which wants the same cores.
/// Where nothing at all is known it is 60 s: a batch of a large model on a slow processor. Of
/// canary and peer the smaller allowance holds, and never more than those 60 s.
Duration silence_allowed(const BatchCost& cost);

/// How long a worker may take from its start to its greeting. Until one of the fleet has greeted it
/// is 120 s: it links torch, a gigabyte that a cold disk may have to read. From then on, since
/// torch is in memory: 20 times `longest`, the longest greeting so far, and at least 10 s; four
/// times as much after each start in a row that failed (`failed_start_count`), so that the third
/// one, the last that a job tries, has the whole 120 s; never more than these.
Duration greeting_allowed(std::optional<Duration> longest, std::uint32_t failed_start_count);

/// A worker is silent when any one of its batches is: the earliest end of several.
std::optional<Silence> earlier(const std::optional<Silence>& one, const Silence& other);

}  // namespace muster
