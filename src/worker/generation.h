#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/decoder/decoder.h"
#include "engine/sampling/sampler.h"
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

/// Sequences that a decoder continues, step by step.
///
/// Threads: owned by the thread of the decoder.
class Generation {
 public:
  Generation(engine::Decoder& decoder, const StepOptions& options, GenerationEvents events);

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
  };

  /// One whose next token is chosen by its logits in this step.
  struct DueSequence {
    SequenceId id = 0;
    std::span<float> logits = {};
    Result<engine::SampledToken> sampled = engine::SampledToken{};
  };

  void announce(const std::vector<StepPart>& parts) const;
  void tell_cache_use();
  bool compute(const std::vector<StepPart>& parts);
  std::vector<BegunSequence> begun(const std::vector<StepPart>& parts);
  bool score(const StepPart& part, std::span<const float> logits,
             std::vector<GeneratedToken>& tokens);
  bool choose(std::vector<DueSequence>& due, std::vector<GeneratedToken>& tokens);
  void append(SequenceId id, engine::SampledToken sampled, std::vector<GeneratedToken>& tokens);
  void finish(SequenceId id, FinishReason reason);
  void end(SequenceId id);

  engine::Decoder& decoder_;
  StepScheduler scheduler_;
  GenerationEvents events_;
  std::map<SequenceId, Sequence> sequences_;
  std::vector<float> logits_;                    // [tokens of a step that want them, vocab]
  std::map<SequenceId, FinishReason> finished_;  // in this step; told behind its tokens
  std::map<SequenceId, Error> failed_;
  CacheUse told_use_;
};

}  // namespace muster
