// Bodies of OpenAI's two routes for replies. Every field is honoured or refused by its name: one
// that was taken and ignored would be an answer to another question.

#include "server/generation_api.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "base/random_bits.h"
#include "server/call_fields.h"
#include "server/json_body.h"

namespace muster {
namespace {

using simdjson::ondemand::json_type;

constexpr std::uint32_t kCompletionTokens = 16;  // OpenAI's, where no limit is given

ApiResult<json_type> type_of(JsonValue& value) {
  json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  return type;
}

// Takes any value of a field that must not be used.
ApiError not_supported(std::string_view name, std::string_view expected) {
  return wrong_field(name, "unsupported_value",
                     fmt::format("Unsupported '{}': expected {}.", name, expected));
}

// `echo`, `store`, …: taken where it asks for nothing.
BodyField only_false(std::string_view name) {
  return {name, [name](JsonValue& value) -> ApiStatus {
            if (MUSTER_TRY(read_bool(value, name))) return not_supported(name, "false");
            return Done{};
          }};
}

BodyField only_one(std::string_view name) {
  return {name, [name](JsonValue& value) -> ApiStatus {
            if (MUSTER_TRY(read_integer(value, name, 1, UINT32_MAX)) != 1) {
              return not_supported(name, "1, as a request has one answer");
            }
            return Done{};
          }};
}

BodyField number_field(std::string_view name, double least, double most, double& into) {
  struct Range {
    double least;
    double most;
  };
  return {name, [name, range = Range{least, most}, &into](JsonValue& value) -> ApiStatus {
            into = MUSTER_TRY(read_number(value, name, range.least, range.most));
            return Done{};
          }};
}

BodyField count_field(std::string_view name, std::uint32_t most,
                      std::optional<std::uint32_t>& into) {
  return {name, [name, most, &into](JsonValue& value) -> ApiStatus {
            into = static_cast<std::uint32_t>(MUSTER_TRY(read_integer(value, name, 1, most)));
            return Done{};
          }};
}

// ---- Sampling ----

// vLLM's -1, as 0, means all of them.
ApiStatus read_top_k(JsonValue& value, std::uint32_t& into) {
  const double number = MUSTER_TRY(read_number(value, "top_k", -1, UINT32_MAX));
  if (number != std::floor(number)) {
    return wrong_field("top_k", "invalid_value",
                       "Invalid 'top_k': expected an integer, -1 or greater.");
  }
  into = number < 0 ? 0 : static_cast<std::uint32_t>(number);
  return Done{};
}

// Negative ones are taken as clients send them: only that the same is the same matters.
ApiStatus read_seed(JsonValue& value, std::optional<std::uint64_t>& into) {
  std::int64_t number = 0;
  if (value.get_int64().get(number) == simdjson::SUCCESS) {
    into = static_cast<std::uint64_t>(number);
    return Done{};
  }
  into = MUSTER_TRY(read_integer(value, "seed", 0, UINT64_MAX));
  return Done{};
}

ApiStatus read_biases(JsonValue& value, std::uint32_t most, SamplingOptions& sampling) {
  simdjson::ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) {
    return wrong_type(value, "logit_bias", "an object");
  }
  for (auto item : object) {
    simdjson::ondemand::field field;
    if (const auto fault = std::move(item).get(field)) return broken_json(fault);
    std::string_view key;
    if (const auto fault = field.unescaped_key().get(key)) return broken_json(fault);
    std::uint32_t id = 0;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (code != std::errc() || end != key.data() + key.size()) {
      return wrong_field("logit_bias", "invalid_value",
                         "Invalid 'logit_bias': expected the ids of tokens as names.");
    }
    if (sampling.logit_bias.size() >= most) return list_too_long("logit_bias", most);
    JsonValue bias = field.value();
    const double number = MUSTER_TRY(read_number(bias, "logit_bias", -100, 100));
    sampling.logit_bias.emplace_back(id, static_cast<float>(number));
  }
  return Done{};
}

ApiStatus read_stops(JsonValue& value, const GenerationLimits& limits,
                     std::vector<std::string>& stops) {
  MUSTER_TRY(read_texts(
      value, "stop", {.texts_most = limits.stops_most, .text_bytes_most = limits.stop_bytes_most},
      false, stops));
  for (const auto& stop : stops) {
    if (!stop.empty()) continue;
    return wrong_field("stop", "invalid_value",
                       "Invalid 'stop': an empty string would end every reply.");
  }
  return Done{};
}

// ---- What is to be continued ----

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
    std::string text;
    const std::array<BodyField, 2> fields{
        BodyField{"type",
                  [&](JsonValue& inner) -> ApiStatus {
                    type = MUSTER_TRY(read_text(inner, "messages.content.type", kNameBytesMost));
                    if (type == "text") return Done{};
                    return not_supported("messages.content.type", "'text'");
                  }},
        BodyField{"text", [&](JsonValue& inner) -> ApiStatus {
                    text = MUSTER_TRY(
                        read_text(inner, "messages.content.text", limits.prompt_bytes_most));
                    return Done{};
                  }}};
    MUSTER_TRY(read_object(part, "messages.content", fields));
    if (type.empty()) return missing_field("messages.content.type");
    if (content.size() + text.size() > limits.prompt_bytes_most) {
      return wrong_field("messages.content", "string_above_max_length",
                         "Invalid 'messages.content': its parts are too long together.");
    }
    content += text;
  }
  return Done{};
}

// Templates of models that run here know no developer: it is what others call the system.
ApiStatus read_role(JsonValue& value, std::string& role) {
  role = MUSTER_TRY(read_text(value, "messages.role", kNameBytesMost));
  if (role == "developer") role = "system";
  if (role == "system" || role == "user" || role == "assistant") return Done{};
  return not_supported("messages.role", "'system', 'developer', 'user' or 'assistant'");
}

ApiStatus read_turn(JsonValue& value, const GenerationLimits& limits, ChatTurn& turn) {
  bool has_content = false;
  const std::array<BodyField, 3> fields{
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

ApiStatus read_messages(JsonValue& value, const GenerationLimits& limits,
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
    MUSTER_TRY(read_turn(message, limits, turns.emplace_back()));
  }
  if (turns.empty()) return empty_list("messages");
  return Done{};
}

// A text, a list of one text, or token ids.
ApiStatus read_prompt(JsonValue& value, const GenerationLimits& limits, GenerationCall& call) {
  const auto type = MUSTER_TRY(type_of(value));
  if (type == json_type::string) {
    call.text = MUSTER_TRY(read_text(value, "prompt", limits.prompt_bytes_most));
  } else if (type == json_type::array) {
    simdjson::ondemand::array list;
    if (const auto fault = value.get_array().get(list)) return broken_json(fault);
    std::size_t count = 0;
    for (auto item : list) {
      JsonValue element;
      if (const auto fault = item.get(element)) return broken_json(fault);
      ++count;
      const bool is_text = MUSTER_TRY(type_of(element)) == json_type::string;
      if (is_text && count == 1) {
        call.text = MUSTER_TRY(read_text(element, "prompt", limits.prompt_bytes_most));
      } else if (is_text || !call.text.empty()) {
        return not_supported("prompt", "one text, as a request has one answer");
      } else if (count > limits.tokens_most) {
        return list_too_long("prompt", limits.tokens_most);
      } else {
        call.ids.push_back(
            static_cast<std::uint32_t>(MUSTER_TRY(read_integer(element, "prompt", 0, UINT32_MAX))));
      }
    }
    if (count == 0) return empty_list("prompt");
  } else {
    return wrong_type(value, "prompt", "a string, an array of one string or of token ids");
  }
  if (!call.text.empty() || !call.ids.empty()) return Done{};
  return wrong_field("prompt", "invalid_value",
                     "Invalid 'prompt': it is empty, and there is nothing to continue.");
}

// ---- The body ----

ApiStatus read_stream_options(JsonValue& value, GenerationRequest& request, bool& has_options) {
  has_options = true;
  const std::array<BodyField, 1> fields{flag_field("include_usage", request.includes_usage)};
  return read_object(value, "stream_options", fields);
}

void add_sampling_fields(std::vector<BodyField>& fields, const GenerationLimits& limits,
                         GenerationCall& call, std::optional<std::uint64_t>& seed) {
  auto& sampling = call.sampling;
  fields.push_back(number_field("temperature", 0, 2, sampling.temperature));
  fields.push_back(number_field("top_p", 0, 1, sampling.top_p));
  fields.push_back(number_field("min_p", 0, 1, sampling.min_p));
  fields.push_back(number_field("presence_penalty", -2, 2, sampling.presence_penalty));
  fields.push_back(number_field("frequency_penalty", -2, 2, sampling.frequency_penalty));
  fields.push_back(number_field("repetition_penalty", 1e-3, 1e3, sampling.repetition_penalty));
  fields.push_back(
      {"top_k", [&sampling](JsonValue& value) { return read_top_k(value, sampling.top_k); }});
  fields.push_back({"seed", [&seed](JsonValue& value) { return read_seed(value, seed); }});
  fields.push_back({"logit_bias", [&limits, &sampling](JsonValue& value) {
                      return read_biases(value, limits.biases_most, sampling);
                    }});
  fields.push_back({"stop", [&limits, &call](JsonValue& value) {
                      return read_stops(value, limits, call.stops);
                    }});
  fields.push_back(flag_field("ignore_eos", call.ignores_stop_ids));
}

// `add` adds the fields of one route; its references outlive the call.
template <typename Add>
ApiResult<GenerationRequest> parse(std::string body, const GenerationLimits& limits, bool is_chat,
                                   Add add) {
  GenerationRequest request;
  request.is_chat = is_chat;
  auto& call = request.call;
  call.sampling.temperature = 1;
  std::optional<std::uint64_t> seed;
  bool has_options = false;
  std::vector<BodyField> fields;
  fields.reserve(32);
  fields.push_back(name_field("model", call.model));
  fields.push_back(flag_field("stream", request.is_stream));
  fields.push_back({"stream_options", [&](JsonValue& value) {
                      return read_stream_options(value, request, has_options);
                    }});
  fields.push_back(count_field("max_tokens", limits.tokens_most, call.token_limit));
  add_sampling_fields(fields, limits, call, seed);
  fields.push_back(only_one("n"));
  std::string user;
  fields.push_back(name_field("user", user));
  add(fields, call);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (call.model.empty()) return missing_field("model");
  if (has_options && !request.is_stream) {
    return wrong_field("stream_options", "invalid_value",
                       "Invalid 'stream_options': only a stream has options; set 'stream'.");
  }
  if (seed) {
    call.sampling.seed = *seed;
  } else {
    fill_random(std::as_writable_bytes(std::span(&call.sampling.seed, 1)));
  }
  return request;
}

}  // namespace

ApiResult<GenerationRequest> parse_chat(std::string body, const GenerationLimits& limits) {
  std::optional<std::uint32_t> completion_tokens;
  auto request =
      MUSTER_TRY(parse(std::move(body), limits, true, [&](auto& fields, GenerationCall& call) {
        fields.push_back({"messages", [&limits, &call](JsonValue& value) {
                            return read_messages(value, limits, call.turns);
                          }});
        fields.push_back(
            count_field("max_completion_tokens", limits.tokens_most, completion_tokens));
        fields.push_back(only_false("logprobs"));
        fields.push_back(only_false("store"));
      }));
  auto& call = request.call;
  if (call.turns.empty()) return missing_field("messages");
  if (completion_tokens && call.token_limit && *completion_tokens != *call.token_limit) {
    return wrong_field("max_tokens", "invalid_value",
                       "Invalid 'max_tokens': 'max_completion_tokens' says another number.");
  }
  if (completion_tokens) call.token_limit = completion_tokens;
  return request;
}

ApiResult<GenerationRequest> parse_completion(std::string body, const GenerationLimits& limits) {
  bool has_prompt = false;
  auto request =
      MUSTER_TRY(parse(std::move(body), limits, false, [&](auto& fields, GenerationCall& call) {
        fields.push_back({"prompt", [&limits, &call, &has_prompt](JsonValue& value) {
                            has_prompt = true;
                            return read_prompt(value, limits, call);
                          }});
        fields.push_back(only_false("echo"));
        fields.push_back(only_one("best_of"));
      }));
  if (!has_prompt) return missing_field("prompt");
  if (!request.call.token_limit) request.call.token_limit = kCompletionTokens;
  return request;
}

}  // namespace muster
