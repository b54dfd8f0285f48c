// The routes of Ollama for vectors and models.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/build_info.h"
#include "server/compute_calls.h"
#include "server/handlers.h"
#include "server/model_words.h"
#include "server/ollama_api.h"
#include "server/read_call.h"
#include "serving/generation_service.h"
#include "spec/decoder_spec.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

Json details_json(const ServedModelStatus& model) {
  const std::string_view family = family_word(model.family);
  return {{"parent_model", ""},   {"format", "safetensors"},
          {"family", family},     {"families", {family}},
          {"parameter_size", ""}, {"quantization_level", quantization_word(model.precision)}};
}

Json listed_json(const ServedModelStatus& model) {
  return {{"name", model.name},
          {"model", model.name},
          {"modified_at", ollama_time(model.created_unix_seconds)},
          {"digest", model.hash},
          {"details", details_json(model)}};
}

// A decoder has no hash that is told. One in its file's own numbers may have several kinds of them,
// and of one that is being measured they are not known.
Json details_json(const ServedDecoderStatus& model) {
  const std::string_view family = decoder_family_name(model.family);
  const bool is_gguf = model.path.ends_with(".gguf");
  const auto quantization =
      model.is_precision_known ? quantization_word(model.precision) : std::string_view();
  return {{"parent_model", ""},   {"format", is_gguf ? "gguf" : "safetensors"},
          {"family", family},     {"families", {family}},
          {"parameter_size", ""}, {"quantization_level", quantization}};
}

Json listed_json(const ServedDecoderStatus& model) {
  return {{"name", model.name},
          {"model", model.name},
          {"modified_at", ollama_time(model.created_unix_seconds)},
          {"details", details_json(model)}};
}

// What vectors take on a device is not known, and no model is unloaded for want of requests.
Json loaded_json(const ServedModelStatus& model) {
  return {{"name", model.name},
          {"model", model.name},
          {"digest", model.hash},
          {"details", details_json(model)},
          {"context_length", model.length_max}};
}

// Its workers are on GPUs alone or on CPUs alone, each with memory of its own.
Json loaded_json(const ServedDecoderStatus& model) {
  Json loaded{{"name", model.name},
              {"model", model.name},
              {"details", details_json(model)},
              {"context_length", model.length_max}};
  const auto worker_count =
      std::count_if(model.devices.begin(), model.devices.end(),
                    [](const auto& device) { return device.state == GroupState::Ready; });
  const bool is_on_gpus = !model.devices.empty() && model.devices.front().is_gpu;
  if (model.planned_bytes > 0) {
    loaded["size"] = model.planned_bytes * static_cast<std::uint64_t>(worker_count);
    if (is_on_gpus) loaded["size_vram"] = loaded["size"];
  }
  if (!is_on_gpus) loaded["size_vram"] = 0;
  return loaded;
}

Json shown_json(const ServedDecoderStatus& model) {
  const std::string family(decoder_family_name(model.family));
  return {{"details", details_json(model)},
          {"model_info",
           {{"general.architecture", family},
            {family + ".context_length", model.length_max},
            {family + ".vocab_size", model.vocab_size}}},
          {"capabilities", {"completion"}},
          {"modified_at", ollama_time(model.created_unix_seconds)}};
}

Json shown_json(const ServedModelStatus& model) {
  const std::string family(family_word(model.family));
  Json info{{"general.architecture", family},
            {family + ".context_length", model.length_max},
            {family + ".vocab_size", model.vocab_size}};
  const bool embeds = model.task == ModelTask::Embed;
  if (embeds) info[family + ".embedding_length"] = model.dim;
  return {{"details", details_json(model)},
          {"model_info", std::move(info)},
          {"capabilities", embeds ? Json{"embedding"} : Json::array()},
          {"modified_at", ollama_time(model.created_unix_seconds)}};
}

// There is nothing to embed. The model must be there all the same.
void answer_nothing(const ExchangePtr& exchange, const std::string& model, const Json& answer) {
  const auto models = exchange->state().service.models();
  const auto is_it = [&](const auto& served) { return model.empty() || served.name == model; };
  exchange->model = model;
  if (std::any_of(models.begin(), models.end(), is_it)) return exchange->answer(200, answer);
  exchange->refuse(api_error(404, "model '" + model + "' not found"));
}

void embed_for(const ExchangePtr& exchange, TimePoint begun, OllamaEmbedRequest request) {
  if (request.call.texts.empty()) {
    return answer_nothing(exchange, request.call.options.model,
                          {{"model", request.model_name}, {"embeddings", Json::array()}});
  }
  RowsReply reply{.fit = {.dimensions = request.call.dimensions, .is_normalized = true}};
  reply.sections = [&clock = exchange->state().clock, begun,
                    name = request.model_name](const EmbedAnswer& answer) {
    return std::vector{ollama_section(name, answer.token_count, clock.now() - begun)};
  };
  compute_rows(exchange, std::move(request.call), std::move(reply));
}

void embed_one(const ExchangePtr& exchange, OllamaEmbedRequest request) {
  if (request.call.texts.empty()) {
    return answer_nothing(exchange, request.call.options.model, {{"embedding", Json::array()}});
  }
  compute_rows(exchange, std::move(request.call),
               {.sections = [](const EmbedAnswer&) { return std::vector{ollama_old_section()}; },
                .names = {.input = "prompt"}});
}

}  // namespace

void ollama_embed(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  state.service.expect_call();
  const TimePoint begun = state.clock.now();
  read_call(exchange, with_list_limits(*exchange, parse_ollama_embed),
            [begun](const ExchangePtr& asker, OllamaEmbedRequest request) {
              embed_for(asker, begun, std::move(request));
            });
}

void ollama_embeddings(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  read_call(exchange, with_list_limits(*exchange, parse_ollama_embeddings), embed_one);
}

void ollama_tags(const ExchangePtr& exchange) {
  Json list = Json::array();
  for (const auto& model : exchange->state().service.models()) {
    if (model.state == ModelState::Ready) list.push_back(listed_json(model));
  }
  for (const auto& model : exchange->state().generation.models()) {
    if (model.state == ModelState::Ready) list.push_back(listed_json(model));
  }
  exchange->answer(200, {{"models", std::move(list)}});
}

void ollama_ps(const ExchangePtr& exchange) {
  Json list = Json::array();
  for (const auto& model : exchange->state().service.models()) {
    if (model.state == ModelState::Ready) list.push_back(loaded_json(model));
  }
  for (const auto& model : exchange->state().generation.models()) {
    if (model.state == ModelState::Ready) list.push_back(loaded_json(model));
  }
  exchange->answer(200, {{"models", std::move(list)}});
}

void ollama_show(const ExchangePtr& exchange) {
  auto name = parse_ollama_show(std::move(exchange->request.body));
  if (!name) return exchange->refuse(name.error());
  exchange->model = *name;
  for (const auto& model : exchange->state().service.models()) {
    if (model.name == *name) return exchange->answer(200, shown_json(model));
  }
  for (const auto& model : exchange->state().generation.models()) {
    if (model.name == *name) return exchange->answer(200, shown_json(model));
  }
  exchange->refuse(api_error(404, "model '" + *name + "' not found"));
}

// Ollama's command line and web interfaces ask whether there is a server before all else.
void ollama_root(const ExchangePtr& exchange) {
  exchange->answer(
      {.status = 200, .content_type = "text/plain; charset=utf-8", .body = "muster is running\n"});
}

void ollama_version(const ExchangePtr& exchange) {
  exchange->answer(200, {{"version", version()}});
}

}  // namespace muster
