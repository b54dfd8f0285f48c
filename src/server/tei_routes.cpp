// The routes of text-embeddings-inference.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/build_info.h"
#include "server/compute_calls.h"
#include "server/handlers.h"
#include "server/model_words.h"
#include "server/read_call.h"
#include "server/tei_api.h"
#include "spec/pooling.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr CallFieldNames kNames{.input = "inputs", .normalize = "normalize"};

// The model that a request without a name is for: the first that embeds, else the first.
const ServedModelStatus* main_model(const std::vector<ServedModelStatus>& models) {
  const auto embeds = [](const auto& model) { return model.task == ModelTask::Embed; };
  const auto found = std::find_if(models.begin(), models.end(), embeds);
  if (found != models.end()) return &*found;
  return models.empty() ? nullptr : &models.front();
}

Json model_type(const ServedModelStatus& model) {
  if (model.task == ModelTask::Embed) {
    return {{"embedding", {{"pooling", pooling_name(model.pooling)}}}};
  }
  return {{"reranker", Json::object()}};
}

template <typename Parse>
auto with_input_limits(Exchange& exchange, Parse parse) {
  return with_limits(exchange, input_limits(exchange.state().options), parse);
}

void embed_for(const ExchangePtr& exchange, TeiEmbedRequest request) {
  RowsReply reply{
      .fit = {.dimensions = request.call.dimensions, .is_normalized = request.is_normalized},
      .sections = [](const EmbedAnswer&) { return std::vector{tei_section()}; },
      .names = kNames};
  compute_rows(exchange, std::move(request.call), std::move(reply));
}

}  // namespace

void tei_embed(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  read_call(exchange, with_input_limits(*exchange, parse_tei_embed), embed_for);
}

void tei_similarity(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  read_call(exchange, with_list_limits(*exchange, parse_tei_similarity),
            [](const ExchangePtr& asker, EmbedCall call) {
              compute_from_rows(asker, std::move(call), kNames, [asker](const auto& answer) {
                asker->answer(tei_similarities(answer));
              });
            });
}

void tei_tokenize(const ExchangePtr& exchange) {
  read_call(exchange, with_list_limits(*exchange, parse_tei_tokenize),
            [](const ExchangePtr& asker, TokenizeCall call) {
              compute_tokens(asker, std::move(call), kNames,
                             [](const TokenizeAnswer&) { return tei_tokens_form(); });
            });
}

void tei_decode(const ExchangePtr& exchange) {
  read_call(exchange, with_input_limits(*exchange, parse_tei_decode),
            [](const ExchangePtr& asker, TokenizeCall call) {
              compute_tokens(asker, std::move(call), {.input = "ids"},
                             [](const TokenizeAnswer&) { return tei_texts_form(); });
            });
}

void tei_info(const ExchangePtr& exchange) {
  const ServerState& state = exchange->state();
  const auto models = state.service.models();
  const auto* model = main_model(models);
  if (model == nullptr)
    return exchange->refuse(api_error(404, "No model that embeds or ranks is served"));
  exchange->answer(200, {{"model_id", model->name},
                         {"model_sha", nullptr},
                         {"model_dtype", dtype_word(model->precision)},
                         {"served_model_name", model->name},
                         {"model_type", model_type(*model)},
                         {"max_input_length", model->length_max},
                         {"max_batch_tokens", state.options.batch_tokens},
                         {"max_batch_requests", nullptr},
                         {"max_client_batch_size", state.options.texts_most},
                         {"auto_truncate", state.options.auto_truncate},
                         {"version", version()},
                         {"sha", nullptr},
                         {"docker_label", nullptr}});
}

}  // namespace muster
