#pragma once

#include <string>

#include "server/api_error.h"
#include "server/generation_api.h"
#include "serving/generation_call.h"

namespace muster {

/// A body of POST /api/generate or /api/chat.
struct OllamaReplyRequest {
  GenerationCall call;  // without turns and text: there is nothing to reply to, which is no error
  std::string model_name;  // as the client has it, for the answer
  bool is_chat = false;
  bool is_stream = true;
};

/// Reads `model`, `prompt`, `system`, `raw`, `stream`, `think` (false), `keep_alive`, and of
/// `options` what chooses tokens (`num_predict`, `temperature`, `top_k`, `top_p`, `min_p`, `seed`,
/// `stop`, `repeat_penalty`, `presence_penalty`, `frequency_penalty`, `repeat_last_n` as -1 or 0).
/// A prompt that is not raw is a turn of a conversation, behind one of the system where there is
/// one; ":latest" behind a model's name is left off.
///
/// Where they are not given, `temperature` is 0.8, `top_k` 40 and `top_p` 0.9, as in Ollama.
/// `repeat_penalty` is 1 and not 1.1: there it is of the last 64 tokens alone, and here of prompt
/// and reply, where as much would make a long reply worse. `num_predict` -1 and -2 are as many
/// tokens as the context has room for; a `seed` of -1 is drawn.
///
/// Options of how Ollama runs a model (`num_ctx`, `num_batch`, `num_gpu`, `main_gpu`, `num_thread`,
/// `num_keep`, `numa`, `low_vram`, `f16_kv`, `use_mmap`, `use_mlock`, `logits_all`) are read and
/// change nothing, as `keep_alive`: a model is served with its own context until it is unloaded.
/// What would change the answer and is not done (`suffix`, `template`, `context`, `images`,
/// `format`, `logprobs`, `mirostat`, …) is taken with the values that ask for nothing alone; any
/// other field is refused by name, and so is a `keep_alive` of 0 without a prompt, which asks for
/// the model to be unloaded.
///
/// Errors: 400. Threads: pure but for the seed.
/// Source: ollama, docs/api.md, api/types.go (DefaultOptions), server/routes.go; ollama-python
/// 0.6, _types.py.
ApiResult<OllamaReplyRequest> parse_ollama_generate(std::string body,
                                                    const GenerationLimits& limits);

/// The same with `messages` (roles system, user, assistant) in place of `prompt`, `system` and
/// `raw`, and `tools: []`.
ApiResult<OllamaReplyRequest> parse_ollama_chat(std::string body, const GenerationLimits& limits);

}  // namespace muster
