// Bodies of Ollama's two routes for replies. Ollama passes over what it does not know; here a field
// is honoured, is documented to change nothing, or is refused by its name.

#include "server/ollama_reply_api.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/call_fields.h"
#include "server/generation_fields.h"
#include "server/generation_prompt.h"
#include "server/json_body.h"
#include "server/ollama_api.h"

namespace muster {
namespace {

using simdjson::ondemand::json_type;

/// What a body says beside what the call has.
struct Given {
  bool names_model = false;
  bool unloads = false;           // its `keep_alive` is 0
  bool has_no_penalties = false;  // its `repeat_last_n` is 0
  bool is_raw = false;
  std::string prompt = {};
  std::string system = {};
  std::optional<std::uint64_t> seed = {};
};

// ---- Options ----

ApiResult<json_type> type_of(JsonValue& value) {
  json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  return type;
}

// An option that changes nothing: of how Ollama runs a model.
BodyField idle_number(std::string_view place) {
  return {key_of(place), [place](JsonValue& value) -> ApiStatus {
            if (MUSTER_TRY(type_of(value)) == json_type::number) return Done{};
            return wrong_type(value, place, "a number");
          }};
}

BodyField idle_flag(std::string_view place) {
  return {key_of(place), [place](JsonValue& value) -> ApiStatus {
            MUSTER_TRY(read_bool(value, place));
            return Done{};
          }};
}

// One that asks for nothing with one value: `mirostat` with 0.
BodyField only_number(std::string_view place, double neutral) {
  return {key_of(place), [place, neutral](JsonValue& value) -> ApiStatus {
            if (MUSTER_TRY(type_of(value)) != json_type::number) {
              return wrong_type(value, place, "a number");
            }
            double number = 0;
            const bool is_read = value.get_double().get(number) == simdjson::SUCCESS;
            if (is_read && number == neutral) return Done{};
            return unsupported_value(place, fmt::format("{}", neutral));
          }};
}

constexpr std::string_view kNumPredict = "options.num_predict";
constexpr std::string_view kRepeatLastN = "options.repeat_last_n";
constexpr std::string_view kPenalizeNewline = "options.penalize_newline";

// -1 goes on until the reply ends, and -2 until the context is full: what comes first ends both.
ApiStatus read_num_predict(JsonValue& value, std::uint32_t most,
                           std::optional<std::uint32_t>& limit) {
  const auto number = whole_number(value);
  if (!number) MUSTER_TRY(read_number(value, kNumPredict, -2, most));  // what is no number at all
  if (number && number->is_negative && number->magnitude <= 2) {
    limit.reset();
    return Done{};
  }
  if (number && !number->is_negative && number->magnitude >= 1 && number->magnitude <= most) {
    limit = static_cast<std::uint32_t>(number->magnitude);
    return Done{};
  }
  return wrong_field(kNumPredict, "invalid_value",
                     fmt::format("Invalid '{}': expected an integer from 1 to {}, or -1 "
                                 "for a reply until its end.",
                                 kNumPredict, with_thousands(most)));
}

ApiStatus read_ollama_seed(JsonValue& value, std::optional<std::uint64_t>& seed) {
  const auto number = MUSTER_TRY(read_seed_number(value, "options.seed"));
  const bool is_drawn = number.is_negative && number.magnitude == 1;
  if (is_drawn) return Done{};
  seed = number.is_negative ? 0 - number.magnitude : number.magnitude;
  return Done{};
}

// Penalties are of all tokens here; a window is not looked through.
ApiStatus read_repeat_last_n(JsonValue& value, bool& has_no_penalties) {
  const auto number = whole_number(value);
  if (!number) MUSTER_TRY(read_number(value, kRepeatLastN, -1, 0));  // what is no number at all
  if (!number || number->magnitude > (number->is_negative ? 1U : 0U)) {
    return unsupported_value(kRepeatLastN, "-1, for all tokens, or 0, for no penalties");
  }
  has_no_penalties = number->magnitude == 0;
  return Done{};
}

void add_sampling_options(std::vector<BodyField>& fields, const GenerationLimits& limits,
                          GenerationCall& call, Given& given) {
  auto& sampling = call.sampling;
  fields.push_back({"num_predict", [&limits, &call](JsonValue& value) {
                      return read_num_predict(value, limits.tokens_most, call.token_limit);
                    }});
  fields.push_back(number_field("options.temperature", {0, 2}, sampling.temperature));
  fields.push_back(number_field("options.top_p", {0, 1}, sampling.top_p));
  fields.push_back(number_field("options.min_p", {0, 1}, sampling.min_p));
  fields.push_back(
      number_field("options.repeat_penalty", {1e-3, 1e3}, sampling.repetition_penalty));
  fields.push_back(number_field("options.presence_penalty", {-2, 2}, sampling.presence_penalty));
  fields.push_back(number_field("options.frequency_penalty", {-2, 2}, sampling.frequency_penalty));
  fields.push_back({"top_k", [&sampling](JsonValue& value) {
                      return read_top_k(value, "options.top_k", sampling.top_k);
                    }});
  fields.push_back(
      {"seed", [&given](JsonValue& value) { return read_ollama_seed(value, given.seed); }});
  fields.push_back({"stop", [&limits, &call](JsonValue& value) {
                      return read_stops(value, "options.stop", limits, call.stops);
                    }});
  fields.push_back({"repeat_last_n", [&given](JsonValue& value) {
                      return read_repeat_last_n(value, given.has_no_penalties);
                    }});
}

// What chooses tokens in ways that are not done here, and what is about Ollama's own runtime.
void add_other_options(std::vector<BodyField>& fields) {
  fields.push_back(only_number("options.mirostat", 0));
  fields.push_back(idle_number("options.mirostat_tau"));  // of `mirostat` alone
  fields.push_back(idle_number("options.mirostat_eta"));
  fields.push_back(only_number("options.typical_p", 1));
  fields.push_back(only_number("options.tfs_z", 1));
  fields.push_back({"penalize_newline", [](JsonValue& value) -> ApiStatus {
                      if (MUSTER_TRY(read_bool(value, kPenalizeNewline))) return Done{};
                      return unsupported_value(kPenalizeNewline, "true");
                    }});
  fields.push_back(only_false("options.vocab_only"));
  fields.push_back(only_false("options.embedding_only"));
  for (const std::string_view name :
       {"options.num_ctx", "options.num_batch", "options.num_gpu", "options.main_gpu",
        "options.num_thread", "options.num_keep"}) {
    fields.push_back(idle_number(name));
  }
  for (const std::string_view name :
       {"options.numa", "options.low_vram", "options.f16_kv", "options.use_mmap",
        "options.use_mlock", "options.logits_all"}) {
    fields.push_back(idle_flag(name));
  }
}

ApiStatus read_options(JsonValue& value, const GenerationLimits& limits, GenerationCall& call,
                       Given& given) {
  std::vector<BodyField> fields;
  fields.reserve(40);
  add_sampling_options(fields, limits, call, given);
  add_other_options(fields);
  MUSTER_TRY(read_object(value, "options", fields));
  if (!given.has_no_penalties) return Done{};
  call.sampling.repetition_penalty = 1;
  call.sampling.presence_penalty = 0;
  call.sampling.frequency_penalty = 0;
  return Done{};
}

// ---- The body ----

// A number of seconds, or as Go writes durations: "5m", "1h30m", "0s".
ApiStatus read_keep_alive(JsonValue& value, bool& unloads) {
  if (MUSTER_TRY(type_of(value)) == json_type::string) {
    const auto text = MUSTER_TRY(read_text(value, "keep_alive", kNameBytesMost));
    const bool has_digit = text.find_first_of("123456789") != std::string::npos;
    unloads = !has_digit && text.find('0') != std::string::npos;
    return Done{};
  }
  double seconds = 0;
  if (value.get_double().get(seconds) != simdjson::SUCCESS) {
    return wrong_type(value, "keep_alive", "a number of seconds or a duration as a string");
  }
  unloads = seconds == 0;
  return Done{};
}

// What has thought to itself would have to be told apart from the reply.
ApiStatus read_think(JsonValue& value, TemplateVariables& variables) {
  bool is_so = false;
  if (value.get_bool().get(is_so) != simdjson::SUCCESS || is_so) {
    return unsupported_value("think", "false");
  }
  variables.emplace_back("enable_thinking", ChatValue(false));
  return Done{};
}

ApiStatus read_turn(JsonValue& value, const GenerationLimits& limits, ChatTurn& turn) {
  bool has_content = false;
  const std::array<BodyField, 6> fields{
      empty_list_field("messages.images"),
      empty_list_field("messages.tool_calls"),
      empty_text_field("messages.thinking"),
      empty_text_field("messages.tool_name"),
      BodyField{"role",
                [&turn](JsonValue& inner) -> ApiStatus {
                  turn.role = MUSTER_TRY(read_text(inner, "messages.role", kNameBytesMost));
                  const auto& role = turn.role;
                  if (role == "system" || role == "user" || role == "assistant") return Done{};
                  return unsupported_value("messages.role", "'system', 'user' or 'assistant'");
                }},
      BodyField{"content", [&](JsonValue& inner) -> ApiStatus {
                  has_content = true;
                  turn.content =
                      MUSTER_TRY(read_text(inner, "messages.content", limits.prompt_bytes_most));
                  return Done{};
                }}};
  MUSTER_TRY(read_object(value, "messages", fields));
  if (turn.role.empty()) return missing_field("messages.role");
  if (!has_content) return missing_field("messages.content");
  return Done{};
}

BodyField text_field(std::string_view name, const GenerationLimits& limits, std::string& into) {
  return {name, [name, &limits, &into](JsonValue& value) -> ApiStatus {
            into = MUSTER_TRY(read_text(value, name, limits.prompt_bytes_most));
            return Done{};
          }};
}

// `add` adds the fields of one route; its references outlive the call.
template <typename Add>
ApiResult<OllamaReplyRequest> parse(std::string body, const GenerationLimits& limits, Given& given,
                                    Add add) {
  OllamaReplyRequest request;
  auto& call = request.call;
  call.sampling.temperature = 0.8;
  call.sampling.top_k = 40;
  call.sampling.top_p = 0.9;
  std::vector<BodyField> fields;
  fields.reserve(20);
  fields.push_back({"model", [&](JsonValue& value) -> ApiStatus {
                      given.names_model = true;
                      request.model_name = MUSTER_TRY(read_text(value, "model", kNameBytesMost));
                      return Done{};
                    }});
  fields.push_back(flag_field("stream", request.is_stream));
  fields.push_back(
      {"options", [&](JsonValue& value) { return read_options(value, limits, call, given); }});
  fields.push_back(
      {"keep_alive", [&given](JsonValue& value) { return read_keep_alive(value, given.unloads); }});
  fields.push_back(
      {"think", [&call](JsonValue& value) { return read_think(value, call.template_variables); }});
  fields.push_back(empty_text_field("format"));
  fields.push_back(only_false("logprobs"));
  fields.push_back(only_number("top_logprobs", 0));
  add(fields, request);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (!given.names_model) return missing_field("model");
  call.model = without_latest(request.model_name);
  set_seed(given.seed, call.sampling);
  return request;
}

// What asks for nothing but the model's going.
ApiStatus check_unload(const OllamaReplyRequest& request, const Given& given) {
  if (!given.unloads || !request.call.turns.empty() || !request.call.text.empty()) return Done{};
  return wrong_field("keep_alive", "unsupported_value",
                     "Unsupported 'keep_alive': 0 without a prompt would unload the model; ask "
                     "POST /v1/models/unload for that.");
}

}  // namespace

ApiResult<OllamaReplyRequest> parse_ollama_generate(std::string body,
                                                    const GenerationLimits& limits) {
  Given given;
  auto request = MUSTER_TRY(
      parse(std::move(body), limits, given, [&](auto& fields, OllamaReplyRequest& /*request*/) {
        fields.push_back(text_field("prompt", limits, given.prompt));
        fields.push_back(text_field("system", limits, given.system));
        fields.push_back(flag_field("raw", given.is_raw));
        fields.push_back(empty_text_field("suffix"));
        fields.push_back(empty_text_field("template"));
        fields.push_back(empty_list_field("context"));
        fields.push_back(empty_list_field("images"));
      }));
  if (given.is_raw && !given.system.empty()) {
    return wrong_field("system", "invalid_value",
                       "Invalid 'system': a raw prompt has none beside it; write it into the "
                       "prompt.");
  }
  auto& call = request.call;
  if (given.is_raw) {
    call.text = std::move(given.prompt);
  } else if (!given.prompt.empty()) {
    if (!given.system.empty()) {
      call.turns.push_back({.role = "system", .content = std::move(given.system)});
    }
    call.turns.push_back({.role = "user", .content = std::move(given.prompt)});
  }
  MUSTER_TRY(check_unload(request, given));
  return request;
}

ApiResult<OllamaReplyRequest> parse_ollama_chat(std::string body, const GenerationLimits& limits) {
  Given given;
  auto request = MUSTER_TRY(
      parse(std::move(body), limits, given, [&limits](auto& fields, OllamaReplyRequest& chat) {
        chat.is_chat = true;
        fields.push_back({"messages", [&limits, &chat](JsonValue& value) {
                            // None of them is a request to load the model.
                            return read_turns(value, limits, read_turn, chat.call.turns);
                          }});
        fields.push_back(empty_list_field("tools"));
      }));
  MUSTER_TRY(check_unload(request, given));
  return request;
}

}  // namespace muster
