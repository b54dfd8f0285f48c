#pragma once

#include <vector>

#include "server/generation_api.h"
#include "server/json_body.h"

namespace muster {

/// Reads `messages`: roles system, developer (what templates call the system), user, assistant;
/// contents as texts, or as parts of the type text, which are joined.
///
/// Errors: 400.
ApiStatus read_messages(JsonValue& value, const GenerationLimits& limits,
                        std::vector<ChatTurn>& turns);

/// Reads one message into a turn. Errors: 400.
using TurnReader = ApiStatus (*)(JsonValue& value, const GenerationLimits& limits, ChatTurn& turn);

/// Reads `messages`, which may be none, each by `read_one`. Errors: 400.
ApiStatus read_turns(JsonValue& value, const GenerationLimits& limits, TurnReader read_one,
                     std::vector<ChatTurn>& turns);

/// Reads `prompt`: a text, token ids, or a list of texts or of lists of token ids. Errors: 400;
/// there is one prompt at least, and none is empty.
ApiStatus read_prompts(JsonValue& value, const GenerationLimits& limits,
                       std::vector<CompletionPrompt>& prompts);

}  // namespace muster
