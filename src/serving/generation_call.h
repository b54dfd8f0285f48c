#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/template_variables.h"
#include "serving/inference_service.h"
#include "spec/decoder_spec.h"
#include "spec/generation.h"

namespace muster {

/// One message of a conversation.
struct ChatTurn {
  std::string role = {};  // as the model's template knows them: "system", "user", "assistant"
  std::string content = {};
  std::optional<std::string> name = {};
};

/// Replies that one call may ask for: as many as one worker computes at once. More would wait for
/// each other, with one caller's request in the place of all others'.
inline constexpr std::uint32_t kChoicesMost = 32;

/// Replies that are asked for: to a conversation, or as continuations of a text or of ids. One call
/// has several where it wants to choose among them; they differ by what is drawn.
struct GenerationCall {
  std::string model = {};   // a served name; empty: the first decoder
  std::string caller = {};  // the name of an API key; empty without keys
  /// From now to the end of all replies. nullopt: they may be without a worker for as long as the
  /// server says.
  std::optional<Duration> deadline = {};
  std::vector<ChatTurn> turns = {};
  TemplateVariables template_variables = {};      // told to the chat template beside `turns`
  std::string text = {};                          // without turns; valid UTF-8
  std::vector<std::uint32_t> ids = {};            // without turns and text
  std::optional<std::uint32_t> token_limit = {};  // nullopt: as many as the context has room for;
                                                  // 0: none, for the echo of a prompt
  std::vector<std::string> stops = {};            // texts that end the reply and are left out
  bool ignores_stop_ids = false;                  // tokens that end a reply do not
  bool echoes_prompt = false;                     // each reply begins with the prompt's text, and
                                                  // log-probabilities with those of its tokens
  SamplingOptions sampling = {};                  // `choice` is set for each reply
  std::uint32_t choice_count = 1;                 // replies that are wanted; from 1
  /// Replies that are computed, at most kChoicesMost; fewer than are wanted count as so many. Of
  /// more the best are taken: those with the greatest mean log-probability of their tokens.
  /// Source: OpenAI, API reference, "Create completion": best_of takes "the one with the highest
  /// log probability per token".
  std::uint32_t candidate_count = 1;

  std::uint32_t computed_count() const { return std::max(choice_count, candidate_count); }
  bool scores_prompt() const { return echoes_prompt && sampling.logprob_count.has_value(); }
};

/// Tokens of a call so far: of its prompt once, and of all replies that are computed for it.
struct GenerationUsage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  // of the prompt: computed for none of the replies, as an
                                    // earlier call's were there
  std::uint32_t reply_tokens = 0;
};

/// A token as a client is shown it.
struct ShownToken {
  std::string bytes = {};            // that it adds to the text, maybe a part of a character
  bool is_text = true;               // false: it adds nothing, and `bytes` is its name
  bool is_echoed = false;            // no text, and yet its name stands in the echo of a prompt
  std::optional<float> logprob = 0;  // nullopt: none, of a prompt's first one
};

/// A token of a reply, or of the prompt that it begins with, where log-probabilities are asked for.
struct ReplyToken {
  ShownToken chosen = {};
  std::vector<ShownToken> top = {};  // the likeliest in its place, the likeliest first
};

/// What has come of one of the replies. Lives for the call that tells it.
struct ReplyPart {
  std::uint32_t choice = 0;           // from 0
  std::string_view text = {};         // whole characters; may be empty
  const ReplyToken* token = nullptr;  // nullptr: none is asked for, or none has come
};

struct GenerationEnd {
  GenerationUsage usage;
  std::vector<std::uint32_t> choices = {};  // that are wanted: where some are taken, the best first
};

/// What becomes of a call: parts and ends of its replies, in any order among them, and then one of
/// the two others, once. None of it comes behind a cancel, which each of them may ask for.
/// `on_failed` may come before `generate` returns.
struct GenerationSink {
  /// The first of a reply comes with its first token; an echo whose tokens are scored before that.
  std::function<void(const ReplyPart&, const GenerationUsage&)> on_part;
  std::function<void(std::uint32_t choice, FinishReason)> on_choice_end;
  std::function<void(const GenerationEnd&)> on_end;
  std::function<void(const CallError&)> on_failed;  // one of its replies, and so all
};

/// One served decoder as it is now.
struct ServedDecoderStatus {
  std::string name = {};
  std::string path = {};
  ModelState state = ModelState::Loading;  // Ready when one device is
  std::string reason = {};                 // of Failed and Drained; of Loading, where its precision
                                           // is measured before
  bool is_leaving = false;                 // unloaded, and its last replies are ending
  std::uint32_t length_max = 0;            // tokens of a prompt and its reply
  std::uint32_t vocab_size = 0;
  DecoderFamily family = DecoderFamily::Llama;
  bool has_chat_template = false;
  DecoderPrecision precision = DecoderPrecision::Own;
  bool is_precision_known = true;  // false: it is being measured
  std::string precision_reason = {};
  /// As it was asked for.
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
  std::string decoder_class = {};   // empty: no device has had it yet
  std::uint64_t planned_bytes = 0;  // of memory, each worker; 0: not known
  double created_unix_seconds = 0;
  std::uint64_t request_count = 0, prompt_token_count = 0, reply_token_count = 0;
  /// The worker on one device.
  struct Device {
    std::string name = {};
    bool is_gpu = false;                      // its weights are in a memory of the device's own
    GroupState state = GroupState::Starting;  // GivenUp: it cannot load it and does not try again
    std::string reason = {};                  // of one that is not Ready
    std::optional<ErrorKind> failure_kind = {};  // as DecoderGroupView's
    /// As DecoderGroupView::start_failure: its workers end before they are ready.
    std::string start_failure = {};
    bool waits_for_memory = false;  // its last load found none, and is tried again
    bool is_asked_for = false;      // what it does an operator has asked for
    std::optional<pid_t> pid = {};  // nullopt: it does not run
    std::uint32_t restart_count = 0;
    std::size_t running_count = 0;       // replies that it computes now
    double cache_use = 0;                // of its cache of keys and values, what these hold: 0 to 1
    std::uint64_t preemption_count = 0;  // replies that gave way to others
    std::uint64_t drafted_count = 0;     // tokens that it guessed and computed ahead
    std::uint64_t accepted_count = 0;    // of these, the ones that replies went on with
  };
  std::vector<Device> devices = {};
};

/// Seconds of things that happened, counted in the classes of ServiceStatus::kBounds.
struct SecondsHistogram {
  std::array<std::uint64_t, ServiceStatus::kBounds.size() + 1> counts{};
  double sum = 0;

  void add(Duration time);
};

/// Counters since the start, over all decoders.
struct GenerationStatus {
  // Requests, each once, however many prompts it has.
  std::uint64_t request_count = 0;  // let in
  std::uint64_t refused_count = 0;  // 429: too many wait
  std::uint64_t limited_count = 0;  // 429 of a caller's own limits
  // Replies, of which a request may have several.
  std::uint64_t invalid_count = 0;  // could not be asked of a model: 400 once the prompt was read
  std::uint64_t failed_count = 0;
  std::uint64_t cancelled_count = 0;
  std::uint64_t expired_count = 0;  // past their deadline
  std::uint64_t stop_count = 0;     // ended by a stop token or a stop string
  std::uint64_t length_count = 0;   // by the limit of tokens or the context
  std::uint64_t prompt_token_count = 0;
  std::uint64_t reply_token_count = 0;
  std::uint64_t prefix_query_token_count = 0;  // looked up in a prefix cache
  std::uint64_t prefix_hit_token_count = 0;    // and found there
  std::size_t running_count = 0;               // with a device
  std::size_t waiting_count = 0;
  SecondsHistogram first_token = {};  // from asking to the first token
  SecondsHistogram token_gap = {};    // between two tokens of a reply
  SecondsHistogram duration = {};     // from asking to the end
};

}  // namespace muster
