#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/step_simulation.h"

namespace muster {

/// What a world of replies is asked for. Prompts and replies are log-normal in all of them.
enum class StepTrace : std::uint8_t {
  PrefixHeavy,  // most prompts begin with one of a few long beginnings; several replies to one
  LongPrompt,   // every third prompt takes a half of the context, in a cache for one to two and a
                // half of them
  Bursty,       // up to a hundred short ones at once, and then nothing for a while
  Mixed,        // all of it, on one to three workers, for several callers
};

std::vector<StepTrace> all_step_traces();

/// "prefix-heavy", "long-prompt", "bursty", "mixed".
std::string_view step_trace_name(StepTrace trace);

struct StepTraceOptions {
  StepTrace trace = StepTrace::Mixed;
  std::uint64_t seed = 1;
  std::size_t reply_count = 150;
  std::uint32_t length_max = 2048;  // lengths are shares of it; at least 64
};

/// A world, all of it by the seed: workers with 8, 16 or 32 places, steps of 128, 256 or 512
/// tokens, a cache for one to four of the longest sequences, arrivals of a Poisson process (of
/// bursts, where it is bursty) at a load of 0.5 to 1.1 of what the workers do with eight replies at
/// once, and one of twenty clients that goes away.
StepWorld step_world(const StepTraceOptions& options);

}  // namespace muster
