#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scheduler/admission.h"
#include "scheduler/steps.h"
#include "simulator/step_planner.h"

namespace muster {

/// What a step takes on a device of virtual time.
///
///   seconds = fixed + token x tokens + logits x sequences whose next token is chosen
///             + cached_token x positions before the parts that are computed
///
/// The figures are those of SmolLM2-135M-Instruct (Q4_1, its own bits) on two cores of an AMD Zen
/// 4: a prompt of 41 tokens took 0.03 s, and 50 tokens behind it came at 240.3 a second, with 66
/// positions before them in the mean. The weights are 96 MB, and a position's keys and values 30
/// layers x 2 x 3 heads x 64 x 2 bytes = 23,040 bytes, read as quickly as the weights. Logits take
/// 49,152 x 576 products beside the 106.2 million of the layers, 0.267 of a token. So
///
///   fixed + 41 token + 0.267 token = 0.03
///   fixed + 1.267 token + 66 fixed x 23,040 / 96,000,000 = 1 / 240.3
///
/// The first figure has one digit, so these tell the order of a real machine's times and no more.
/// Units: seconds.
/// Source: benchmarks/results/2026-11-25-house.8.json, its second run.
struct StepCosts {
  double fixed = 3.3e-3;  // the weights are read
  double token = 0.647e-3;
  double logits = 0.173e-3;
  double cached_token = 0.79e-6;
};

/// A reply that is asked for.
struct SimulatedReply {
  TimePoint at{};  // when it is asked for
  std::vector<std::uint32_t> ids = {};
  std::uint32_t token_limit = 1;
  std::uint32_t token_count = 1;  // that it comes to: where that is less, it ends by itself
  std::size_t caller = 0;  // 0: without a key; 1 to 3: keys, who share no prefix and take turns
  std::optional<TimePoint> leaves = {};  // the client goes away
};

/// A server with one decoder, and what it is asked for.
struct StepWorld {
  /// Of each worker. block_tokens: as StepOptions has it, the blocks by which streams are placed.
  /// step_tokens_most is at least sequences_most, and each reply fits length_max and the cache.
  StepOptions steps = {};
  std::size_t worker_count = 1;
  StepCosts costs = {};
  Duration queue_budget = AdmissionOptions{}.queue_budget;
  std::vector<SimulatedReply> replies = {};  // by time
  MakeStepPlanner make_planner = make_step_planner;
};

struct StepWorldResult {
  std::vector<double> first_token_seconds = {};  // from when a reply was asked for
  std::vector<double> token_seconds = {};        // between tokens, of each reply the mean
  std::vector<double> end_seconds = {};  // of each reply that came to its end, from when it was
                                         // asked for
  double busy_seconds = 0;               // of all workers
  double span_seconds = 0;               // until the last event
  std::uint64_t step_count = 0;
  std::uint64_t step_token_count = 0;    // computed in these
  std::uint64_t step_token_room = 0;     // that they could have computed
  std::uint64_t prompt_token_count = 0;  // of the sequences that have begun, and
  std::uint64_t cached_token_count = 0;  // those of them that were there already
  std::uint64_t preemption_count = 0;
  std::uint64_t refused_count = 0;    // by admission
  std::uint64_t cancelled_count = 0;  // the client went away before the end
  /// The longest wait of a sequence for a place in its worker, as a share of what it may take.
  double wait_share_most = 0;
  std::vector<std::string> violations = {};  // of what must always hold; empty when all is well
};

/// Runs the code that serves replies on virtual time: the rule by which they are let in
/// (scheduler/reply_admission.h) with the forecast of their wait, the owners of streams and workers
/// (coordinator/decoder_streams.h, decoder_workers.h), who give each worker its streams in their
/// turns and by the frames that they send, and in each worker the scheduler of steps. Only the
/// worker's loop, the engine and the client are arithmetic. The same world gives the same result.
///
/// Checked at each step of a worker:
/// - no block is lost, held by two sequences that do not begin alike up to its end, or written to
///   while another one holds it, and a sequence that begins behind kept blocks finds there what it
///   would have computed;
/// - a step has no more tokens than its budget and no more sequences than places, each sequence
///   once, and of each the tokens that are next;
/// - nobody starves. The oldest sequence that has a place is never preempted and gets its share, a
///   token or, of its prompt, what is left or f tokens: f is half of three quarters of the budget
///   that is left when all other places generate. No sequence gets a place before one that came
///   earlier to its worker, but where that one waits for a beginning that another one is about to
///   compute. And none waits for its place, at first or after it was preempted, for more steps than
///
///     sum of c min(1, max(1 / places, b / U)) + p / P
///
///   over those that have a place or came earlier. c: tokens still to be chosen of one; b: blocks
///   that it has at its end; p: ids of it that are not computed, 0 where it generates; P: the
///   budget without a token for each other place; U: all blocks but those of the largest that waits
///   and came no later. For in each step either prompts take all of the budget that others leave, P
///   at least, which takes 1 from the sum of p / P; or every one that has a place chooses a token.
///   In the latter either all places are taken, or the blocks do not suffice for the first that
///   waits, so that those that have a place come to U together: this takes 1 from the first part.
///   Steps do not count in which it may be overtaken, or in which blocks are taken from others;
///   from such a step on, and from one in which a later one gets its place first, the sum is made
///   anew.
///
/// Checked in the parent: no more wait than may; nobody waits while a worker has a place, and no
/// worker has more than its places; a caller's replies are given away in the order in which they
/// were asked for; and of the tokens of each other caller no more overtake a reply than its own
/// caller has asked for since anybody waits, and one reply more.
///
/// Checked at the end: every reply that was let in has come to its exact tokens, each told once and
/// in order, with the right reason, or to its cancellation; every block is back.
StepWorldResult simulate_steps(const StepWorld& world);

}  // namespace muster
