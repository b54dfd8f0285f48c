// vLLM's /score, of a model that ranks or of one that embeds.

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/wall_clock.h"
#include "server/compute_calls.h"
#include "server/handlers.h"
#include "server/read_call.h"
#include "server/score_api.h"

namespace muster {
namespace {

// A model that is named and embeds, or none is named and none ranks.
bool asks_for_cosines(const std::string& name, const std::vector<ServedModelStatus>& models) {
  const auto ranks = [](const auto& model) { return model.task == ModelTask::Rerank; };
  if (name.empty()) return std::none_of(models.begin(), models.end(), ranks);
  const auto is_it = [&](const auto& model) { return model.name == name; };
  const auto found = std::find_if(models.begin(), models.end(), is_it);
  return found != models.end() && !ranks(*found);
}

void answer_scores(const ExchangePtr& exchange, std::span<const float> scores) {
  exchange->answer(score_response("score-" + exchange->request_id,
                                  static_cast<std::int64_t>(unix_seconds()), exchange->model,
                                  scores, exchange->token_count.value_or(0)));
}

void score_by_cosine(const ExchangePtr& exchange, ScoreRequest request) {
  const std::size_t first_count = request.first.size();
  EmbedCall call{.options = std::move(request.options), .texts = std::move(request.first)};
  std::move(request.second.begin(), request.second.end(), std::back_inserter(call.texts));
  compute_from_rows(exchange, std::move(call), {},
                    [exchange, first_count](const EmbedAnswer& answer) {
                      answer_scores(exchange, pair_cosines(answer.rows, answer.dim, first_count));
                    });
}

void score_for(const ExchangePtr& exchange, ScoreRequest request) {
  if (asks_for_cosines(request.options.model, exchange->state().service.models())) {
    return score_by_cosine(exchange, std::move(request));
  }
  RerankCall call{.options = std::move(request.options),
                  .queries = std::move(request.first),
                  .texts = std::move(request.second),
                  .raw_scores = request.raw_scores};
  compute_scores(exchange, std::move(call), [exchange](const RerankAnswer& answer) {
    answer_scores(exchange, answer.scores);
  });
}

}  // namespace

void answer_score(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  read_call(exchange, with_list_limits(*exchange, parse_score), score_for);
}

}  // namespace muster
