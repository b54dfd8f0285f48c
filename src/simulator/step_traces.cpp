// Worlds of replies, drawn entirely from a seed. The order of draws is part of a world: a draw that
// is added or moved changes every world after it.

#include "simulator/step_traces.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "simulator/random.h"

namespace muster {
namespace {

using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kTokens = 49'152;  // different ones
constexpr std::size_t kBeginnings = 4;
constexpr double kRepliesAtOnce = 8;  // that share the reading of the weights
constexpr double kLeaveSeconds = 2;   // until a client that goes away does so, in the mean

/// What a world's prompts and replies are drawn from.
struct Draws {
  SimulatedChance chance;
  StepTrace trace = StepTrace::Mixed;
  std::uint32_t length_max = 0;
  std::size_t caller_count = 1;
  std::vector<Ids> beginnings = {};
};

TimePoint after(double time_seconds) {
  return TimePoint{} +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time_seconds));
}

void add_tokens(SimulatedChance& chance, std::uint32_t count, Ids& ids) {
  for (; count > 0; --count) ids.push_back(static_cast<std::uint32_t>(chance.below(kTokens)));
}

/// A log-normal count, from 1 to most.
std::uint32_t count_of(SimulatedChance& chance, double mean, double sigma, std::uint32_t most) {
  const double drawn = std::round(chance.log_normal(mean, sigma));
  return static_cast<std::uint32_t>(std::clamp(drawn, 1.0, static_cast<double>(most)));
}

StepOptions options_of(SimulatedChance& chance, StepTrace trace, std::uint32_t length_max) {
  StepOptions options;
  options.sequences_most = 8U << chance.below(3);
  options.step_tokens_most = 128U << chance.below(3);
  options.length_max = length_max;
  const double most = trace == StepTrace::LongPrompt ? 1.5 : 3;
  const double tokens = length_max * (1 + most * chance.uniform());
  options.block_count = static_cast<std::uint32_t>(tokens / options.block_tokens) + 1;
  return options;
}

/// How a prompt is drawn: all but mixed traces have one way.
StepTrace way_of(Draws& draws) {
  if (draws.trace != StepTrace::Mixed) return draws.trace;
  constexpr StepTrace kWays[] = {StepTrace::PrefixHeavy, StepTrace::LongPrompt, StepTrace::Bursty};
  return kWays[draws.chance.below(std::size(kWays))];
}

Ids prompt_of(Draws& draws, std::uint32_t most) {
  auto& chance = draws.chance;
  const double length = draws.length_max;
  const auto way = way_of(draws);
  Ids ids;
  if (way == StepTrace::PrefixHeavy) {
    if (chance.happens(0.9)) ids = draws.beginnings[chance.below(kBeginnings)];
    ids.resize(std::min<std::size_t>(ids.size(), most - 1));
    const auto left = most - static_cast<std::uint32_t>(ids.size());
    add_tokens(chance, count_of(chance, length / 40, 0.8, left), ids);
  } else if (way == StepTrace::LongPrompt && chance.happens(1.0 / 3)) {
    add_tokens(chance, count_of(chance, length / 2, 0.4, most), ids);
  } else {
    add_tokens(chance, count_of(chance, length / 20, 1, most), ids);
  }
  return ids;
}

SimulatedReply reply_of(Draws& draws) {
  auto& chance = draws.chance;
  SimulatedReply reply;
  reply.token_count = count_of(chance, draws.length_max / 40.0, 0.8, draws.length_max / 4);
  reply.token_limit = reply.token_count;
  if (chance.happens(0.5)) {
    reply.token_limit += 1 + static_cast<std::uint32_t>(chance.below(draws.length_max / 8));
  }
  reply.ids = prompt_of(draws, draws.length_max - reply.token_limit);
  reply.caller = static_cast<std::size_t>(chance.below(draws.caller_count));
  return reply;
}

/// Several replies to one prompt, now and then.
std::size_t choice_count(Draws& draws) {
  const bool may_be = draws.trace == StepTrace::PrefixHeavy || draws.trace == StepTrace::Mixed;
  if (!may_be || !draws.chance.happens(0.1)) return 1;
  return 2 + static_cast<std::size_t>(draws.chance.below(3));
}

/// What a worker does for a reply, of whose prompt it finds the beginning with its cache.
double work_of(const StepCosts& costs, const SimulatedReply& reply, std::size_t found) {
  const auto prompt = static_cast<double>(reply.ids.size() - std::min(found, reply.ids.size()));
  return costs.token * prompt +
         reply.token_count * (costs.token + costs.logits + costs.fixed / kRepliesAtOnce);
}

/// When they come: as many at once as the trace says, with pauses that make up the load.
void set_times(Draws& draws, double load, StepWorld& world) {
  auto& chance = draws.chance;
  std::size_t found = 0;
  for (const auto& beginning : draws.beginnings) found += beginning.size() / kBeginnings;
  const bool is_burst =
      draws.trace == StepTrace::Bursty || (draws.trace == StepTrace::Mixed && chance.happens(0.3));
  const bool has_beginnings = draws.trace == StepTrace::PrefixHeavy;
  const auto workers = static_cast<double>(world.worker_count);
  double time = 0;
  double work = 0;  // of those that have come since the last pause
  std::size_t left_at_once = 0;
  const Ids* last = nullptr;
  for (auto& reply : world.replies) {
    const bool is_choice = last != nullptr && *last == reply.ids;
    if (!is_choice && left_at_once == 0) {
      time += chance.exponential(std::max(work, 1e-6) / (load * workers));
      work = 0;
      left_at_once = is_burst ? 8 + static_cast<std::size_t>(chance.below(93)) : 1;
    }
    if (!is_choice) --left_at_once;
    work += work_of(world.costs, reply, has_beginnings ? found : 0);
    reply.at = after(time);
    if (chance.happens(0.05)) reply.leaves = after(time + chance.exponential(kLeaveSeconds));
    last = &reply.ids;
  }
}

}  // namespace

std::vector<StepTrace> all_step_traces() {
  return {StepTrace::PrefixHeavy, StepTrace::LongPrompt, StepTrace::Bursty, StepTrace::Mixed};
}

std::string_view step_trace_name(StepTrace trace) {
  switch (trace) {
    case StepTrace::PrefixHeavy:
      return "prefix-heavy";
    case StepTrace::LongPrompt:
      return "long-prompt";
    case StepTrace::Bursty:
      return "bursty";
    case StepTrace::Mixed:
      return "mixed";
  }
  return "";
}

StepWorld step_world(const StepTraceOptions& options) {
  MUSTER_CHECK(options.length_max >= 64);
  const auto trace = options.trace;
  Draws draws{
      .chance = SimulatedChance(options.seed), .trace = trace, .length_max = options.length_max};
  auto& chance = draws.chance;
  StepWorld world;
  world.steps = options_of(chance, trace, options.length_max);
  if (trace == StepTrace::Mixed) {
    world.worker_count = 1 + static_cast<std::size_t>(chance.below(3));
    world.steps.keeps_prefixes = chance.happens(0.9);
    world.queue_budget = std::chrono::milliseconds(500 + chance.below(20'000));
    draws.caller_count = 1 + static_cast<std::size_t>(chance.below(4));
  } else if (trace == StepTrace::PrefixHeavy) {
    draws.caller_count = 1 + static_cast<std::size_t>(chance.below(2));
  }
  for (std::size_t i = 0; i < kBeginnings; ++i) {
    const auto length = options.length_max;
    const auto count = length / 16 + static_cast<std::uint32_t>(chance.below(length / 4));
    add_tokens(chance, count, draws.beginnings.emplace_back());
  }
  const double load = 0.5 + 0.6 * chance.uniform();
  while (world.replies.size() < options.reply_count) {
    auto reply = reply_of(draws);
    for (auto left = choice_count(draws); left > 0; --left) world.replies.push_back(reply);
  }
  set_times(draws, load, world);
  return world;
}

}  // namespace muster
