#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/decoder/decoder.h"
#include "engine/sampling/sampler.h"
#include "scheduler/draft_lengths.h"
#include "scheduler/prompt_lookup.h"
#include "scheduler/step_cost.h"
#include "scheduler/steps.h"
#include "wire/generation_messages.h"

namespace muster {

/// What becomes of sequences, told from within `step`.
struct GenerationEvents {
  /// A step computes so many tokens now, more than one of each of its sequences.
  std::function<void(std::uint32_t token_count)> on_step_begun;
  std::function<void(const CacheUse&)> on_cache_use;  // it has changed; before what has changed it
  std::function<void(const Tokens&)> on_tokens;       // of each step; may be none
  std::function<void(SequenceId, FinishReason)> on_finished;
  std::function<void(SequenceId, const Error&)> on_failed;
  /// A step could not be computed. What its sequences share is at fault, and what has become of it
  /// nobody knows: there is no further step.
  std::function<void(const Error&)> on_broken;
};

struct GenerationOptions {
  StepOptions steps = {};
  /// Tokens that are drafted of a sequence at most (prompt lookup), to be computed with its next
  /// one; 0: none. Those that were drafted right are what it would have had without: nothing but
  /// time depends on it where a decoder's logits do not depend on how ids are cut into steps.
  std::uint32_t drafted_most = 0;
};

/// Sequences that a decoder continues, step by step.
///
/// Where drafts are asked for, a step chooses a sequence's next token by the logits of the last one
/// known, the one behind it by those of the first drafted token if that is the one that was chosen,
/// and so on. A draft is as long as it pays by what steps have cost until then.
///
/// Threads: owned by the thread of the decoder.
class Generation {
 public:
  Generation(engine::Decoder& decoder, const GenerationOptions& options, GenerationEvents events,
             const Clock& clock);

  /// Lets a sequence in.
  ///
  /// Errors: InvalidArgument (an id outside of the vocabulary, a sampling option by name, an id
  /// that is in use); those of `StepScheduler::add`.
  Status add(SequenceId id, Generate request);

  /// It gets no more tokens. Nothing for an id that is not in.
  void cancel(SequenceId id);

  bool is_idle() const { return sequences_.empty(); }

  std::uint64_t preemption_count() const { return scheduler_.preemption_count(); }

  /// Computes one step, scores ids of prompts where that is asked for, and chooses the next token
  /// of each sequence that is due. Not behind on_broken.
  void step();

 private:
  /// Its ids are the scheduler's.
  struct Sequence {
    std::vector<std::uint32_t> stop_ids;
    SamplingOptions sampling;
    engine::TokenHistory history;
    bool is_continued = true;  // false: it ends behind its prompt
    bool has_begun = false;    // that it has is told
    bool is_replying = false;  // it has a token
    PromptLookup lookup = {};

    bool stops_at(std::uint32_t token) const {
      return std::find(stop_ids.begin(), stop_ids.end(), token) != stop_ids.end();
    }
  };

  /// One whose next token is chosen by its logits in this step, and those behind it as far as its
  /// draft is right.
  struct DueSequence {
    SequenceId id = 0;
    std::span<float> logits = {};  // [1 + drafted, vocab]
    std::vector<engine::SampledToken> sampled = {};
    Status status = Done{};
  };

  void propose();
  void announce(const std::vector<StepPart>& parts) const;
  void tell_cache_use();
  bool compute(const std::vector<StepPart>& parts);
  std::vector<BegunSequence> begun(const std::vector<StepPart>& parts);
  bool score(const StepPart& part, std::span<const float> logits,
             std::vector<GeneratedToken>& tokens);
  bool choose(std::vector<DueSequence>& due, Tokens& told);
  void sample(DueSequence& due);
  void learn_cost(const std::vector<StepPart>& parts, Duration time);
  void append(SequenceId id, engine::SampledToken sampled, std::vector<GeneratedToken>& tokens);
  void finish(SequenceId id, FinishReason reason);
  void end(SequenceId id);

  engine::Decoder& decoder_;
  const std::uint32_t drafted_most_;
  const std::uint32_t drafted_of_all_most_;  // rows of logits that a step has for them
  StepScheduler scheduler_;
  GenerationEvents events_;
  const Clock& clock_;
  StepCost cost_;
  std::map<SequenceId, Sequence> sequences_;
  std::vector<float> logits_;                    // [tokens of a step that want them, vocab]
  std::map<SequenceId, FinishReason> finished_;  // in this step; told behind its tokens
  std::map<SequenceId, Error> failed_;
  CacheUse told_use_;
};

}  // namespace muster
