// Paths and reasons are shown to administrators alone, because a reason quotes files. What can be
// judged without the disk is judged first, on the loop; loading then goes on elsewhere and the
// answer follows when it has ended. All faults that depend on the content of the disk share one
// answer, and the log has the true reason under the id of the request.

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "server/call_fields.h"
#include "server/handlers.h"
#include "server/json_body.h"
#include "server/model_words.h"
#include "serving/model_name.h"
#include "serving/serving_decoder.h"
#include "serving/serving_models.h"
#include "spec/encoder_spec.h"
#include "spec/generation.h"
#include "spec/pooling.h"
#include "spec/precision.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// Where a model lies, and why it could not be loaded, is for administrators alone.
Json model_json(const ServedModelStatus& model, bool shows_places) {
  Json json{{"id", model.name},
            {"object", "model"},
            {"created", static_cast<std::int64_t>(model.created_unix_seconds)},
            {"owned_by", "muster"},
            {"task", model.task == ModelTask::Embed ? "embed" : "rerank"},
            {"state", model_state_name(model.state)}};
  if (!model.reason.empty() && shows_places) json["reason"] = model.reason;
  if (shows_places) json["path"] = model.path;
  json["dim"] = model.dim == 0 ? Json(nullptr) : Json(model.dim);
  json["length_max"] = model.length_max;
  json["vocab_size"] = model.vocab_size;
  json["prompts"] = model.prompts;
  json["default_prompt"] = model.default_prompt;
  json["pooling"] = pooling_name(model.pooling);
  json["normalize"] = model.normalize;
  json["precision"] = precision_name(model.precision);
  json["precision_reason"] = model.precision_reason;
  json["equality_class"] = model.equality_class;
  json["requests"] = model.request_count;
  json["texts"] = model.text_count;
  json["tokens"] = model.token_count;
  return json;
}

Json decoder_json(const ServedDecoderStatus& model, bool shows_places) {
  Json json{{"id", model.name},
            {"object", "model"},
            {"created", static_cast<std::int64_t>(model.created_unix_seconds)},
            {"owned_by", "muster"},
            {"task", "generate"},
            {"state", model_state_name(model.state)}};
  if (!model.reason.empty() && shows_places) json["reason"] = model.reason;
  if (shows_places) json["path"] = model.path;
  json["length_max"] = model.length_max;
  json["vocab_size"] = model.vocab_size;
  json["has_chat_template"] = model.has_chat_template;
  json["precision"] =
      model.is_precision_known ? Json(decoder_precision_name(model.precision)) : Json(nullptr);
  json["precision_reason"] = model.precision_reason;
  json["kv_cache_dtype"] = kv_cache_dtype_name(model.kv_cache_dtype);
  json["requests"] = model.request_count;
  json["prompt_tokens"] = model.prompt_token_count;
  json["tokens"] = model.reply_token_count;
  return json;
}

ApiError no_such_model(const std::string& name) {
  ApiError error = api_error(404, "The model '" + name + "' does not exist");
  error.param = "model";
  error.code = "model_not_found";
  return error;
}

BodyField text_field(std::string_view name, std::string& into) {
  return {name, [name, &into](JsonValue& value) -> ApiStatus {
            into = MUSTER_TRY(read_text(value, name, kNameBytesMost));
            return Done{};
          }};
}

// What is asked for, and which of the settings for all it names itself.
struct LoadRequest {
  ServedModel model;
  NamedSettings named;
};

// `auto` leaves the field empty, so that the service chooses, whatever the server's setting is.
ApiStatus read_precision(JsonValue& value, LoadRequest& load) {
  const std::string name = MUSTER_TRY(read_text(value, "precision", kNameBytesMost));
  load.named.has_precision = true;
  if (name == "auto") return Done{};
  ServedModel& model = load.model;
  model.precision = parse_precision(name);
  model.wants_own_bits = name == decoder_precision_name(DecoderPrecision::Own);
  if (model.precision || model.wants_own_bits) return Done{};
  return wrong_field(
      "precision", "invalid_value",
      "Invalid 'precision': expected 'auto', 'fp32', 'bf16', 'fp16', 'own' or 'int8'.");
}

ApiStatus read_kv_cache_dtype(JsonValue& value, LoadRequest& load) {
  const std::string name = MUSTER_TRY(read_text(value, "kv_cache_dtype", kNameBytesMost));
  const auto dtype = parse_kv_cache_dtype(name);
  load.named.has_kv_cache_dtype = true;
  load.model.kv_cache_dtype = dtype.value_or(load.model.kv_cache_dtype);
  if (dtype) return Done{};
  return wrong_field("kv_cache_dtype", "invalid_value",
                     "Invalid 'kv_cache_dtype': expected 'auto', 'fp32', 'fp16' or 'int8'.");
}

ApiStatus read_pooling(JsonValue& value, ServedModel& model) {
  const std::string name = MUSTER_TRY(read_text(value, "pooling", kNameBytesMost));
  model.pooling = parse_pooling(name);
  if (model.pooling) return Done{};
  return wrong_field("pooling", "invalid_value",
                     "Invalid 'pooling': expected 'cls', 'mean', 'max' or 'last'.");
}

ApiResult<LoadRequest> parse_load(std::string body) {
  constexpr std::uint64_t kPathBytesMost = 4096;  // as the kernel's PATH_MAX
  constexpr std::uint64_t kDevicesMost = 4096;
  constexpr std::uint64_t kLengthMost = 1 << 20;
  LoadRequest load;
  ServedModel& model = load.model;
  std::string prompt;
  bool has_prompt = false;
  const std::vector<BodyField> fields{
      {"model",
       [&](JsonValue& value) -> ApiStatus {
         model.model = MUSTER_TRY(read_text(value, "model", kPathBytesMost));
         return Done{};
       }},
      text_field("name", model.name),
      {"precision", [&](JsonValue& value) { return read_precision(value, load); }},
      {"kv_cache_dtype", [&](JsonValue& value) { return read_kv_cache_dtype(value, load); }},
      {"pooling", [&](JsonValue& value) { return read_pooling(value, model); }},
      {"normalize",
       [&](JsonValue& value) -> ApiStatus {
         model.normalize = MUSTER_TRY(read_bool(value, "normalize"));
         return Done{};
       }},
      {"length_max",
       [&](JsonValue& value) -> ApiStatus {
         const auto length = MUSTER_TRY(read_integer(value, "length_max", 1, kLengthMost));
         model.length_max = static_cast<std::uint32_t>(length);
         return Done{};
       }},
      {"prompt_name",
       [&](JsonValue& value) -> ApiStatus {
         prompt = MUSTER_TRY(read_text(value, "prompt_name", kNameBytesMost));
         has_prompt = true;
         return Done{};
       }},
      {"devices",
       [&](JsonValue& value) {
         return read_texts(value, "devices",
                           {.texts_most = kDevicesMost, .text_bytes_most = kNameBytesMost}, false,
                           model.devices);
       }},
  };
  MUSTER_TRY(read_body(std::move(body), fields));
  if (model.model.empty()) return missing_field("model");
  if (has_prompt) model.prompt_name = prompt;
  return load;
}

// What can be said without looking at a file.
ApiStatus check_asked(const ServedModel& model, const ServerState& state) {
  InferenceService& service = state.service;
  if (!model.name.empty()) {
    const auto fits = check_model_name(model.name);
    if (!fits) return wrong_field("name", "invalid_value", fits.error().message);
  }
  if (!model.name.empty() && service.roster().has_name(model.name)) {
    return wrong_field("name", "invalid_value",
                       "Invalid 'name': a model of that name is there: " + model.name + ".");
  }
  const auto devices = service.fleet().groups;
  for (const auto& name : model.devices) {
    const auto is_it = [&](const auto& device) { return device.name == name; };
    if (std::any_of(devices.begin(), devices.end(), is_it)) continue;
    return wrong_field("devices", "invalid_value",
                       "Invalid 'devices': the server has no device '" + name + "'.");
  }
  return Done{};
}

// The field that check_decoder_settings refuses, in the order in which it looks at them.
std::string_view refused_field(const ServedModel& model, const std::vector<Device>& devices) {
  if (model.pooling) return "pooling";
  if (model.normalize) return "normalize";
  if (model.prompt_name) return "prompt_name";
  if (model.length_max.value_or(kDecoderLengthLeast) < kDecoderLengthLeast) return "length_max";
  auto rest = model;
  rest.kv_cache_dtype = KvCacheDtype::Auto;
  if (check_decoder_settings(rest, devices)) return "kv_cache_dtype";
  rest.precision.reset();
  rest.wants_own_bits = false;
  return check_decoder_settings(rest, devices) ? "precision" : "devices";
}

// Whoever has not named a field is told where its value comes from.
ApiError refused_setting(const std::string& field, const NamedSettings& named, const Error& why) {
  const bool is_servers = (field == "precision" && !named.has_precision) ||
                          (field == "kv_cache_dtype" && !named.has_kv_cache_dtype);
  const char* const end =
      is_servers ? " (the server's setting, since this load names none: name one, or auto)." : ".";
  return wrong_field(field, "unsupported_value", "Invalid '" + field + "': " + why.message + end);
}

// What decoders do not have, or none of these devices. `load` has the server's settings.
ApiStatus check_decoder(const LoadRequest& load, const ServerState& state) {
  const auto& devices = state.options.devices;
  const auto fits = check_decoder_settings(load.model, devices);
  if (fits) return Done{};
  const std::string field(refused_field(load.model, devices));
  return refused_setting(field, load.named, fits.error());
}

// What models that embed or rank do not have on these devices. `load` has the server's settings.
ApiStatus check_encoder(const LoadRequest& load, const ServerState& state) {
  const auto fits = check_encoder_settings(load.model, state.options.devices);
  if (fits) return Done{};
  // In the order in which they are looked at.
  const bool has_cache = load.model.kv_cache_dtype != KvCacheDtype::Auto;
  return refused_setting(has_cache ? "kv_cache_dtype" : "precision", load.named, fits.error());
}

// An answer that tells a missing folder from a broken file would let whoever may load models ask
// for every path of the machine, and read what parsers quote of a file.
ApiError loading_error(const Error& error) {
  switch (error.kind) {
    case ErrorKind::NotFound:
    case ErrorKind::Corrupt:
    case ErrorKind::InvalidArgument:
    case ErrorKind::Unsupported:
    case ErrorKind::Internal:
      break;
    default:
      return api_error(error);
  }
  ApiError answer = api_error(
      404, "The model cannot be loaded: the server's log says why, under the id of this request");
  answer.param = "model";
  answer.code = "model_not_found";
  return answer;
}

// What comes of a load, whatever the model does. json_of: the model as it is shown.
template <typename Model, typename JsonOf>
std::function<void(Result<Model>)> load_answer(const ExchangePtr& exchange, std::string what,
                                               JsonOf json_of) {
  return [exchange, what = std::move(what), json_of](Result<Model> loaded) {
    if (loaded) {
      exchange->log_event("model " + loaded->name + ": loaded");
      return exchange->answer(200, json_of(*loaded, true));
    }
    exchange->log_event("model " + what + ": not loaded: " + loaded.error().message,
                        LogLevel::Warning);
    exchange->refuse(loading_error(loaded.error()));
  };
}

void load_decoder(const ExchangePtr& exchange, LoadRequest load, const std::string& what) {
  ServerState& state = exchange->state();
  take_defaults(load.model, state.options.defaults, load.named, /*generates=*/true);
  if (const auto fits = check_decoder(load, state); !fits) return exchange->refuse(fits.error());
  state.generation.decoders().load(load.model,
                                   load_answer<ServedDecoderStatus>(exchange, what, decoder_json));
}

void load_encoder(const ExchangePtr& exchange, LoadRequest load, const std::string& what) {
  ServerState& state = exchange->state();
  take_defaults(load.model, state.options.defaults, load.named, /*generates=*/false);
  if (const auto fits = check_encoder(load, state); !fits) return exchange->refuse(fits.error());
  state.service.load_model(load.model, load_answer<ServedModelStatus>(exchange, what, model_json));
}

}  // namespace

void answer_models(const ExchangePtr& exchange) {
  Json list = Json::array();
  for (const auto& model : exchange->state().service.models()) {
    list.push_back(model_json(model, exchange->is_admin));
  }
  for (const auto& model : exchange->state().generation.models()) {
    list.push_back(decoder_json(model, exchange->is_admin));
  }
  exchange->answer(200, {{"object", "list"}, {"data", std::move(list)}});
}

void answer_model(const ExchangePtr& exchange) {
  for (const auto& model : exchange->state().service.models()) {
    if (model.name == exchange->parameter) {
      return exchange->answer(200, model_json(model, exchange->is_admin));
    }
  }
  for (const auto& model : exchange->state().generation.models()) {
    if (model.name == exchange->parameter) {
      return exchange->answer(200, decoder_json(model, exchange->is_admin));
    }
  }
  exchange->refuse(no_such_model(exchange->parameter));
}

void load_model(const ExchangePtr& exchange) {
  auto load = parse_load(std::move(exchange->request.body));
  if (!load) return exchange->refuse(load.error());
  const ServedModel& model = load->model;
  if (const auto fits = check_asked(model, exchange->state()); !fits) {
    return exchange->refuse(fits.error());
  }
  const std::string what = model.name.empty() ? model.model : model.name;
  exchange->log_event("model " + what + ": load");
  // A name's end tells, or the files, which are looked at elsewhere.
  if (model.model.ends_with(".gguf")) return load_decoder(exchange, *load, what);
  const auto on_kind = [exchange, asked = *load, what](const Result<bool>& generates) {
    if (!generates) return exchange->refuse(loading_error(generates.error()));
    if (*generates) return load_decoder(exchange, asked, what);
    load_encoder(exchange, asked, what);
  };
  exchange->state().generation.decoders().ask_kind(model.model, on_kind);
}

void unload_model(const ExchangePtr& exchange) {
  std::string name;
  const std::vector<BodyField> fields{text_field("model", name)};
  if (const auto read = read_body(std::move(exchange->request.body), fields); !read) {
    return exchange->refuse(read.error());
  }
  if (name.empty()) return exchange->refuse(missing_field("model"));
  ServerState& state = exchange->state();
  std::size_t reply_count = 0;
  auto done = state.service.unload_model(name);
  if (!done && done.error().kind == ErrorKind::NotFound) {
    if (const auto unloaded = state.generation.decoders().unload(name)) {
      reply_count = *unloaded;
      done = Done{};
    }
  }
  if (!done) {
    return exchange->refuse(done.error().kind == ErrorKind::NotFound ? no_such_model(name)
                                                                     : api_error(done.error()));
  }
  exchange->log_event("model " + name + ": unload");
  exchange->answer(
      200,
      {{"id", name}, {"object", "model"}, {"state", "absent"}, {"in_flight_replies", reply_count}});
}

}  // namespace muster
