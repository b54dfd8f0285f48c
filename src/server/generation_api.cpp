// Bodies of OpenAI's two routes for replies. Every field is honoured or refused by its name: one
// that was taken and ignored would be an answer to another question.

#include "server/generation_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "chat/template_variables.h"
#include "server/call_fields.h"
#include "server/generation_fields.h"
#include "server/generation_prompt.h"
#include "server/json_body.h"

namespace muster {
namespace {

constexpr std::uint32_t kCompletionTokens = 16;  // OpenAI's, where no limit is given

BodyField empty_object_field(std::string_view name) {
  return {name, [name](JsonValue& value) -> ApiStatus {
            simdjson::ondemand::object object;
            if (value.get_object().get(object) != simdjson::SUCCESS) {
              return wrong_type(value, name, "an object");
            }
            bool is_empty = false;
            if (const auto fault = object.is_empty().get(is_empty)) return broken_json(fault);
            if (!is_empty) return unsupported_value(name, "an empty object");
            return Done{};
          }};
}

// A word that leaves all as it is: `auto`.
ApiStatus read_word(JsonValue& value, std::string_view name,
                    std::initializer_list<std::string_view> words) {
  const std::string word = MUSTER_TRY(read_text(value, name, kNameBytesMost));
  if (std::find(words.begin(), words.end(), word) != words.end()) return Done{};
  return unsupported_value(name, fmt::format("'{}'", fmt::join(words, "' or '")));
}

constexpr std::string_view kFormatType = "response_format.type";

ApiStatus read_response_format(JsonValue& value) {
  bool has_type = false;
  const std::array<BodyField, 1> fields{
      BodyField{"type", [&has_type](JsonValue& type) -> ApiStatus {
                  has_type = true;
                  return read_word(type, kFormatType, {"text"});
                }}};
  const auto read = read_object(value, "response_format", fields);
  // A schema beside the type is of a type that is not "text".
  if (!read && read.error().code == "unknown_parameter")
    return unsupported_value(kFormatType, "'text'");
  if (!read) return read.error();
  if (!has_type) return missing_field(kFormatType);
  return Done{};
}

constexpr std::string_view kTemplateVariables = "chat_template_kwargs";

ApiStatus read_template_variables(JsonValue& value, TemplateVariables& variables) {
  simdjson::ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) {
    return wrong_type(value, kTemplateVariables, "an object");
  }
  std::string_view json;
  if (const auto fault = object.raw_json().get(json)) return broken_json(fault);
  auto read = parse_template_variables(json);
  if (!read) {
    return wrong_field(kTemplateVariables, "invalid_value",
                       fmt::format("Invalid '{}': {}.", kTemplateVariables, read.error().message));
  }
  variables = *std::move(read);
  return Done{};
}

// What clients send with every request, and what changes nothing as they send it.
void add_idle_fields(std::vector<BodyField>& fields) {
  fields.push_back({"response_format", read_response_format});
  fields.push_back(empty_list_field("tools"));
  fields.push_back({"tool_choice", [](JsonValue& value) {
                      return read_word(value, "tool_choice", {"none", "auto"});
                    }});
  // It is about tools, of which there are none.
  fields.push_back({"parallel_tool_calls", [](JsonValue& value) -> ApiStatus {
                      MUSTER_TRY(read_bool(value, "parallel_tool_calls"));
                      return Done{};
                    }});
  fields.push_back(empty_object_field("metadata"));
  fields.push_back({"service_tier", [](JsonValue& value) {
                      return read_word(value, "service_tier", {"auto", "default"});
                    }});
}

struct CountRange {
  std::uint32_t least = 1;
  std::uint32_t most = 0;
};

BodyField count_field(std::string_view name, CountRange range, std::optional<std::uint32_t>& into) {
  return {name, [name, range, &into](JsonValue& value) -> ApiStatus {
            into = static_cast<std::uint32_t>(
                MUSTER_TRY(read_integer(value, name, range.least, range.most)));
            return Done{};
          }};
}

// ---- Sampling ----

ApiStatus read_biases(JsonValue& value, std::uint32_t most, SamplingOptions& sampling) {
  simdjson::ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) {
    return wrong_type(value, "logit_bias", "an object");
  }
  std::set<std::uint32_t> ids;
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
    if (!ids.insert(id).second) {
      return wrong_field("logit_bias", "invalid_value",
                         fmt::format("Invalid 'logit_bias': {} is given twice.", id));
    }
    JsonValue bias = field.value();
    const double number = MUSTER_TRY(read_number(bias, "logit_bias", -100, 100));
    sampling.logit_bias.emplace_back(id, static_cast<float>(number));
  }
  return Done{};
}

// ---- Choices and their log-probabilities ----

/// As the two routes name them.
struct ChoiceFields {
  std::optional<std::uint32_t> count;       // `n`
  std::optional<std::uint32_t> candidates;  // `best_of`
  std::optional<std::uint32_t> top;         // `top_logprobs`, or `logprobs` of /v1/completions
  bool wants_logprobs = false;              // `logprobs` of a chat
};

ApiStatus take_chat_logprobs(const ChoiceFields& given, GenerationCall& call) {
  if (given.top.value_or(0) > 0 && !given.wants_logprobs) {
    return wrong_field("top_logprobs", "invalid_value",
                       "Invalid 'top_logprobs': it is for answers with 'logprobs'; set that to "
                       "true.");
  }
  if (given.wants_logprobs) call.sampling.logprob_count = given.top.value_or(0);
  return Done{};
}

// Which of more candidates are wanted is known at their end alone.
ApiStatus take_choices(const ChoiceFields& given, bool is_stream, GenerationCall& call) {
  call.choice_count = given.count.value_or(1);
  call.candidate_count = given.candidates.value_or(call.choice_count);
  if (call.candidate_count < call.choice_count) {
    return wrong_field(
        "best_of", "invalid_value",
        fmt::format("Invalid 'best_of': expected at least 'n', which is {}.", call.choice_count));
  }
  if (is_stream && call.candidate_count > call.choice_count) {
    return wrong_field("best_of", "invalid_value",
                       "Invalid 'best_of': a stream cannot wait for the best; expected 'n', or no "
                       "'stream'.");
  }
  return Done{};
}

// ---- The body ----

ApiStatus read_stream_options(JsonValue& value, GenerationRequest& request, bool& has_options) {
  has_options = true;
  const std::array<BodyField, 1> fields{
      flag_field("stream_options.include_usage", request.includes_usage)};
  return read_object(value, "stream_options", fields);
}

void add_sampling_fields(std::vector<BodyField>& fields, const GenerationLimits& limits,
                         GenerationCall& call, std::optional<std::uint64_t>& seed) {
  auto& sampling = call.sampling;
  fields.push_back(number_field("temperature", {0, 2}, sampling.temperature));
  fields.push_back(number_field("top_p", {0, 1}, sampling.top_p));
  fields.push_back(number_field("min_p", {0, 1}, sampling.min_p));
  fields.push_back(number_field("presence_penalty", {-2, 2}, sampling.presence_penalty));
  fields.push_back(number_field("frequency_penalty", {-2, 2}, sampling.frequency_penalty));
  fields.push_back(number_field("repetition_penalty", {1e-3, 1e3}, sampling.repetition_penalty));
  fields.push_back({"top_k", [&sampling](JsonValue& value) {
                      return read_top_k(value, "top_k", sampling.top_k);
                    }});
  fields.push_back({"seed", [&seed](JsonValue& value) { return read_seed(value, "seed", seed); }});
  fields.push_back({"logit_bias", [&limits, &sampling](JsonValue& value) {
                      return read_biases(value, limits.biases_most, sampling);
                    }});
  fields.push_back({"stop", [&limits, &call](JsonValue& value) {
                      return read_stops(value, "stop", limits, call.stops);
                    }});
  fields.push_back(flag_field("ignore_eos", call.ignores_stop_ids));
}

// `add` adds the fields of one route; its references outlive the call.
template <typename Add>
ApiResult<GenerationRequest> parse(std::string body, const GenerationLimits& limits, bool is_chat,
                                   ChoiceFields& choices, Add add) {
  GenerationRequest request;
  request.is_chat = is_chat;
  auto& call = request.call;
  call.sampling.temperature = 1;
  std::optional<std::uint64_t> seed;
  bool has_options = false;
  bool names_model = false;
  std::vector<BodyField> fields;
  fields.reserve(40);
  fields.push_back({"model", [&](JsonValue& value) -> ApiStatus {
                      names_model = true;
                      call.model = MUSTER_TRY(read_text(value, "model", kNameBytesMost));
                      return Done{};
                    }});
  fields.push_back(flag_field("stream", request.is_stream));
  fields.push_back({"stream_options", [&](JsonValue& value) {
                      return read_stream_options(value, request, has_options);
                    }});
  const CountRange tokens{.least = is_chat ? 1U : 0U, .most = limits.tokens_most};
  fields.push_back(count_field("max_tokens", tokens, call.token_limit));
  add_sampling_fields(fields, limits, call, seed);
  fields.push_back(count_field("n", {.most = limits.choices_most}, choices.count));
  std::string user;
  fields.push_back(name_field("user", user));
  add(fields, call);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (!names_model) return missing_field("model");
  if (has_options && !request.is_stream) {
    return wrong_field("stream_options", "invalid_value",
                       "Invalid 'stream_options': only a stream has options; set 'stream'.");
  }
  MUSTER_TRY(take_choices(choices, request.is_stream, call));
  set_seed(seed, call.sampling);
  request.draws_seed = !seed;
  return request;
}

void take_prompts(std::vector<CompletionPrompt> prompts, GenerationRequest& request) {
  request.call.text = std::move(prompts.front().text);
  request.call.ids = std::move(prompts.front().ids);
  prompts.erase(prompts.begin());
  request.more_prompts = std::move(prompts);
}

}  // namespace

ApiResult<GenerationRequest> parse_chat(std::string body, const GenerationLimits& limits) {
  std::optional<std::uint32_t> completion_tokens;
  ChoiceFields choices;
  const CountRange top{.least = 0, .most = kLogprobsMost};
  auto request = MUSTER_TRY(
      parse(std::move(body), limits, true, choices, [&](auto& fields, GenerationCall& call) {
        fields.push_back({"messages", [&limits, &call](JsonValue& value) {
                            return read_messages(value, limits, call.turns);
                          }});
        fields.push_back(
            count_field("max_completion_tokens", {.most = limits.tokens_most}, completion_tokens));
        fields.push_back(flag_field("logprobs", choices.wants_logprobs));
        fields.push_back(count_field("top_logprobs", top, choices.top));
        fields.push_back({kTemplateVariables, [&call](JsonValue& value) {
                            return read_template_variables(value, call.template_variables);
                          }});
        fields.push_back(only_false("store"));
        add_idle_fields(fields);
      }));
  auto& call = request.call;
  if (call.turns.empty()) return missing_field("messages");
  if (completion_tokens && call.token_limit && *completion_tokens != *call.token_limit) {
    return wrong_field("max_tokens", "invalid_value",
                       "Invalid 'max_tokens': 'max_completion_tokens' says another number.");
  }
  if (completion_tokens) call.token_limit = completion_tokens;
  MUSTER_TRY(take_chat_logprobs(choices, call));
  return request;
}

ApiResult<GenerationRequest> parse_completion(std::string body, const GenerationLimits& limits) {
  std::vector<CompletionPrompt> prompts;
  ChoiceFields choices;
  const CountRange top{.least = 0, .most = kLogprobsMost};
  auto request = MUSTER_TRY(
      parse(std::move(body), limits, false, choices, [&](auto& fields, GenerationCall& call) {
        fields.push_back({"prompt", [&limits, &prompts](JsonValue& value) {
                            return read_prompts(value, limits, prompts);
                          }});
        fields.push_back(flag_field("echo", call.echoes_prompt));
        fields.push_back(count_field("best_of", {.most = limits.choices_most}, choices.candidates));
        fields.push_back(count_field("logprobs", top, choices.top));
        fields.push_back(none_field("suffix"));
      }));
  if (prompts.empty()) return missing_field("prompt");
  take_prompts(std::move(prompts), request);
  auto& call = request.call;
  if (call.token_limit == 0U && !call.echoes_prompt) {
    return wrong_field("max_tokens", "invalid_value",
                       "Invalid 'max_tokens': expected an integer from 1 to " +
                           with_thousands(limits.tokens_most) + "; 0 is for 'echo' alone.");
  }
  call.sampling.logprob_count = choices.top;
  if (!call.token_limit) call.token_limit = kCompletionTokens;
  return request;
}

}  // namespace muster
