#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "serving/generation_call.h"

namespace muster {

/// A prompt to continue: a text, or ids where that is empty.
struct CompletionPrompt {
  std::string text = {};
  std::vector<std::uint32_t> ids = {};
};

/// A body of POST /v1/chat/completions or /v1/completions.
struct GenerationRequest {
  GenerationCall call;                              // to the first prompt
  std::vector<CompletionPrompt> more_prompts = {};  // all else of their calls is as in `call`
  bool draws_seed = false;                          // none is given: each prompt has one of its own
  bool is_chat = false;
  bool is_stream = false;
  bool includes_usage = false;  // a last part of the stream tells how many tokens there were
};

struct GenerationLimits {
  std::uint64_t prompt_bytes_most = 8 << 20;  // of one text; no context is so long
  std::uint32_t messages_most = 4096;
  std::uint32_t stops_most = 16;  // OpenAI's limit is 4
  std::uint32_t stop_bytes_most = 1024;
  std::uint32_t tokens_most = 1 << 20;  // that may be asked for
  std::uint32_t prompts_most = 256;     // OpenAI's limit of a list is 2,048
  std::uint32_t biases_most = 1024;
  std::uint32_t choices_most = kChoicesMost;  // OpenAI takes 128 of a chat, and 20 for `best_of`
};

/// Reads `messages` (roles system, developer, user, assistant; contents as texts or parts of the
/// type text), `model`, `stream`, `stream_options`, `max_tokens`, `max_completion_tokens`, `stop`,
/// `temperature`, `top_p`, `presence_penalty`, `frequency_penalty`, `logit_bias`, `seed`, `n`,
/// `logprobs`, `top_logprobs`, `user`; of vLLM's `top_k` (-1 and 0: all), `min_p`,
/// `repetition_penalty`, `ignore_eos`, `chat_template_kwargs`. What would change the answer and is
/// not done (`store`, `tools`, `tool_choice`, `parallel_tool_calls`, `response_format`, `metadata`,
/// `service_tier`) is taken with the values that ask for nothing alone; any other field is refused
/// by name.
///
/// A model that is named as empty stands for the first one. A temperature that is not given is 1,
/// as with OpenAI; a seed that is not given is drawn.
///
/// Errors: 400 as OpenAI words them. Threads: pure but for the seed.
/// Source: OpenAI, API reference, "Create chat completion"; vLLM 0.11, sampling_params.py.
ApiResult<GenerationRequest> parse_chat(std::string body, const GenerationLimits& limits);

/// The same with `prompt` (a text, token ids, or a list of either) in place of `messages`, and
/// OpenAI's 16 tokens where no limit is given; `logprobs` is a number, of the likeliest tokens that
/// are told with each; `best_of` replies are computed for the `n` that are sent, in a stream no
/// more than these; `echo` puts the prompt before each reply, with its `logprobs` where these are
/// asked for, and `max_tokens` may be 0 with it: evaluations ask for nothing else.
///
/// Source: OpenAI, API reference, "Create completion".
ApiResult<GenerationRequest> parse_completion(std::string body, const GenerationLimits& limits);

}  // namespace muster
