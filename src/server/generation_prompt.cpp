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
                    return unsupported_value("messages.content.type", "'text'");
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

ApiStatus one_prompt_only() {
  return unsupported_value("prompt", "one text, as a request has one prompt");
}

// The ids of a prompt.
ApiStatus read_prompt_ids(JsonValue& value, const GenerationLimits& limits, GenerationCall& call) {
  simdjson::ondemand::array ids;
  if (const auto fault = value.get_array().get(ids)) return broken_json(fault);
  for (auto item : ids) {
    JsonValue element;
    if (const auto fault = item.get(element)) return broken_json(fault);
    if (call.ids.size() == limits.tokens_most) return list_too_long("prompt", limits.tokens_most);
    call.ids.push_back(
        static_cast<std::uint32_t>(MUSTER_TRY(read_integer(element, "prompt", 0, UINT32_MAX))));
  }
  if (call.ids.empty()) return empty_list("prompt");
  return Done{};
}

// A list of token ids, or of one prompt: a text or its ids.
ApiStatus read_prompt_list(JsonValue& value, const GenerationLimits& limits, GenerationCall& call) {
  simdjson::ondemand::array list;
  if (const auto fault = value.get_array().get(list)) return broken_json(fault);
  std::size_t count = 0;
  bool has_prompt = false;
  for (auto item : list) {
    JsonValue element;
    if (const auto fault = item.get(element)) return broken_json(fault);
    const auto type = MUSTER_TRY(type_of(element));
    const bool is_prompt = type == json_type::string || type == json_type::array;
    if (has_prompt || (is_prompt && count > 0)) return one_prompt_only();
    if (++count > limits.tokens_most) return list_too_long("prompt", limits.tokens_most);
    if (type == json_type::string) {
      call.text = MUSTER_TRY(read_text(element, "prompt", limits.prompt_bytes_most));
    } else if (type == json_type::array) {
      MUSTER_TRY(read_prompt_ids(element, limits, call));
    } else {
      call.ids.push_back(
          static_cast<std::uint32_t>(MUSTER_TRY(read_integer(element, "prompt", 0, UINT32_MAX))));
    }
    has_prompt = is_prompt;
  }
  if (count == 0) return empty_list("prompt");
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

ApiStatus read_prompt(JsonValue& value, const GenerationLimits& limits, GenerationCall& call) {
  const auto type = MUSTER_TRY(type_of(value));
  if (type == json_type::string) {
    call.text = MUSTER_TRY(read_text(value, "prompt", limits.prompt_bytes_most));
  } else if (type == json_type::array) {
    MUSTER_TRY(read_prompt_list(value, limits, call));
  } else {
    return wrong_type(value, "prompt", "a string, an array of one string or of token ids");
  }
  if (!call.text.empty() || !call.ids.empty()) return Done{};
  return wrong_field("prompt", "invalid_value",
                     "Invalid 'prompt': it is empty, and there is nothing to continue.");
}

}  // namespace muster
