#include "server/handlers.h"

#include <array>

namespace muster {
namespace {

// In the order of RouteId.
constexpr std::array kHandlers{
    &answer_embeddings,
    &answer_rerank,
    &answer_tokenize,
    &answer_models,
    &answer_model,
    &load_model,
    &unload_model,
    &answer_livez,
    &answer_readyz,
    &answer_health,
    &answer_metrics,
    &answer_devices,
    &answer_decisions,
    &answer_config,
    &answer_openapi,
    &answer_gpu_stats,
    &answer_fleet_health,
    &answer_fleet_config,
    &change_config,
    &answer_fleet_stats,
    &answer_one_gpu,
    &test_gpus,
    &answer_recommendations,
    &answer_resources,
    &manage_resources,
    &answer_performance,
    &drain_device,
    &resume_device,
    &restart_device,
    &answer_openapi_json,
    &answer_embeddings,
    &answer_bare_rerank,
    &answer_models,
    &answer_score,
    &answer_score,
    &tei_embed,
    &tei_embed,
    &tei_similarity,
    &tei_tokenize,
    &tei_decode,
    &tei_info,
    &ollama_embed,
    &ollama_embeddings,
    &ollama_tags,
    &ollama_show,
    &ollama_version,
    &cohere_embed,
    &cohere_rerank,
    &answer_search,
};
static_assert(kHandlers.size() == kRouteCount);

}  // namespace

void handle(const ExchangePtr& exchange) {
  kHandlers[static_cast<std::size_t>(exchange->route().id)](exchange);
}

}  // namespace muster
