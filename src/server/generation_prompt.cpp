// What a request for a reply wants continued: a conversation, a text or token ids.

#include "server/generation_prompt.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "server/call_fields.h"

namespace muster {
namespace {

using simdjson::ondemand::json_type;

ApiResult<json_type> type_of(JsonValue& value) {
  json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  return type;
}

// A text, or a list of parts that are all text; these are joined.
ApiStatus read_content(JsonValue& value, const GenerationLimits& limits, std::string& content) {
  if (MUSTER_TRY(type_of(value)) != json_type::array) {
    content = MUSTER_TRY(read_text(value, "messages.content", limits.prompt_bytes_most));
    return Done{};
  }
  simdjson::ondemand::array parts;
  if (const auto fault = value.get_array().get(parts)) return broken_json(fault);
  for (auto item : parts) {
    JsonValue part;
    if (const auto fault = item.get(part)) return broken_json(fault);
    std::string type;
    std::optional<std::string> text;
    const std::array<BodyField, 2> fields{
        BodyField{"type",
                  [&](JsonValue& inner) -> ApiStatus {
                    type = MUSTER_TRY(read_text(inner, "messages.content.type", kNameBytesMost));
                    if (type == "text") return Done{};
                    return unsupported_value(
                        "messages.content.type",
                        "'text'; no model that runs here reads images, sound or files");
                  }},
        BodyField{"text", [&](JsonValue& inner) -> ApiStatus {
                    text = MUSTER_TRY(
                        read_text(inner, "messages.content.text", limits.prompt_bytes_most));
                    return Done{};
                  }}};
    MUSTER_TRY(read_object(part, "messages.content", fields));
    if (type.empty()) return missing_field("messages.content.type");
    if (!text) return missing_field("messages.content.text");
    if (content.size() + text->size() > limits.prompt_bytes_most) {
      return wrong_field("messages.content", "string_above_max_length",
                         "Invalid 'messages.content': its parts are too long together.");
    }
    content += *text;
  }
  return Done{};
}

// Templates of models that run here know no developer: it is what others call the system.
ApiStatus read_role(JsonValue& value, std::string& role) {
  role = MUSTER_TRY(read_text(value, "messages.role", kNameBytesMost));
  if (role == "developer") role = "system";
  if (role == "system" || role == "user" || role == "assistant") return Done{};
  return unsupported_value("messages.role", "'system', 'developer', 'user' or 'assistant'");
}

ApiStatus read_turn(JsonValue& value, const GenerationLimits& limits, ChatTurn& turn) {
  bool has_content = false;
  // As answers have them: what a client sends back of one.
  const std::array<BodyField, 7> fields{
      none_field("messages.refusal"),
      none_field("messages.tool_calls"),
      none_field("messages.function_call"),
      none_field("messages.audio"),
      BodyField{"role", [&](JsonValue& inner) { return read_role(inner, turn.role); }},
      BodyField{"content",
                [&](JsonValue& inner) {
                  has_content = true;
                  return read_content(inner, limits, turn.content);
                }},
      BodyField{"name", [&](JsonValue& inner) -> ApiStatus {
                  turn.name = MUSTER_TRY(read_text(inner, "messages.name", kNameBytesMost));
                  return Done{};
                }}};
  MUSTER_TRY(read_object(value, "messages", fields));
  if (turn.role.empty()) return missing_field("messages.role");
  if (!has_content) return missing_field("messages.content");
  return Done{};
}

ApiResult<std::string> read_prompt_text(JsonValue& value, const GenerationLimits& limits) {
  auto text = MUSTER_TRY(read_text(value, "prompt", limits.prompt_bytes_most));
  if (!text.empty()) return text;
  return wrong_field("prompt", "invalid_value",
                     "Invalid 'prompt': it is empty, and there is nothing to continue.");
}

ApiStatus read_prompt_id(JsonValue& value, const GenerationLimits& limits,
                         std::vector<std::uint32_t>& ids) {
  if (ids.size() == limits.tokens_most) return list_too_long("prompt", limits.tokens_most);
  ids.push_back(
      static_cast<std::uint32_t>(MUSTER_TRY(read_integer(value, "prompt", 0, UINT32_MAX))));
  return Done{};
}

// One of several prompts: a list of its ids.
ApiStatus read_prompt_ids(JsonValue& value, const GenerationLimits& limits,
                          std::vector<std::uint32_t>& ids) {
  simdjson::ondemand::array list;
  if (const auto fault = value.get_array().get(list)) return broken_json(fault);
  for (auto item : list) {
    JsonValue element;
    if (const auto fault = item.get(element)) return broken_json(fault);
    MUSTER_TRY(read_prompt_id(element, limits, ids));
  }
  if (ids.empty()) return empty_list("prompt");
  return Done{};
}

// An element of a list of prompts, or of the ids of one: what the first one is, all are.
ApiStatus read_prompt_element(JsonValue& value, json_type type, const GenerationLimits& limits,
                              std::vector<CompletionPrompt>& prompts) {
  if (type != json_type::string && type != json_type::array) {
    if (prompts.empty()) prompts.emplace_back();
    return read_prompt_id(value, limits, prompts.front().ids);
  }
  if (prompts.size() == limits.prompts_most) return list_too_long("prompt", limits.prompts_most);
  auto& prompt = prompts.emplace_back();
  if (type == json_type::array) return read_prompt_ids(value, limits, prompt.ids);
  prompt.text = MUSTER_TRY(read_prompt_text(value, limits));
  return Done{};
}

ApiStatus read_prompt_list(JsonValue& value, const GenerationLimits& limits,
                           std::vector<CompletionPrompt>& prompts) {
  simdjson::ondemand::array list;
  if (const auto fault = value.get_array().get(list)) return broken_json(fault);
  std::optional<json_type> first;
  for (auto item : list) {
    JsonValue element;
    if (const auto fault = item.get(element)) return broken_json(fault);
    const auto type = MUSTER_TRY(type_of(element));
    if (first.value_or(type) != type) {
      return unsupported_value("prompt", "a list of texts, of token ids, or of lists of token ids");
    }
    first = type;
    MUSTER_TRY(read_prompt_element(element, type, limits, prompts));
  }
  if (prompts.empty()) return empty_list("prompt");
  return Done{};
}

}  // namespace

ApiStatus read_turns(JsonValue& value, const GenerationLimits& limits, TurnReader read_one,
                     std::vector<ChatTurn>& turns) {
  simdjson::ondemand::array messages;
  if (value.get_array().get(messages) != simdjson::SUCCESS) {
    return wrong_type(value, "messages", "an array of objects");
  }
  for (auto item : messages) {
    JsonValue message;
    if (const auto fault = item.get(message)) return broken_json(fault);
    if (turns.size() >= limits.messages_most) {
      return list_too_long("messages", limits.messages_most);
    }
    MUSTER_TRY(read_one(message, limits, turns.emplace_back()));
  }
  return Done{};
}

ApiStatus read_messages(JsonValue& value, const GenerationLimits& limits,
                        std::vector<ChatTurn>& turns) {
  MUSTER_TRY(read_turns(value, limits, read_turn, turns));
  if (turns.empty()) return empty_list("messages");
  return Done{};
}

ApiStatus read_prompts(JsonValue& value, const GenerationLimits& limits,
                       std::vector<CompletionPrompt>& prompts) {
  const auto type = MUSTER_TRY(type_of(value));
  if (type == json_type::array) return read_prompt_list(value, limits, prompts);
  if (type != json_type::string) {
    return wrong_type(value, "prompt", "a string, token ids, or an array of either");
  }
  prompts.push_back({.text = MUSTER_TRY(read_prompt_text(value, limits))});
  return Done{};
}

}  // namespace muster
