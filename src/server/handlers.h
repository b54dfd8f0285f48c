#pragma once

#include "server/exchange.h"

namespace muster {

// What answers each route (routes.cpp says which); docs/openapi.yaml says how. Each answers the
// exchange once, at once or later. Threads: the loop's.

// compute_routes.cpp
void answer_embeddings(const ExchangePtr& exchange);
void answer_rerank(const ExchangePtr& exchange);
void answer_tokenize(const ExchangePtr& exchange);

void answer_bare_rerank(const ExchangePtr& exchange);  // /rerank, of TEI or of infinity and vLLM

// generation_routes.cpp
void answer_chat(const ExchangePtr& exchange);
void answer_completion(const ExchangePtr& exchange);

// search_routes.cpp
void answer_search(const ExchangePtr& exchange);

// score_routes.cpp: vLLM's
void answer_score(const ExchangePtr& exchange);

// tei_routes.cpp: text-embeddings-inference
void tei_embed(const ExchangePtr& exchange);
void tei_similarity(const ExchangePtr& exchange);
void tei_tokenize(const ExchangePtr& exchange);
void tei_decode(const ExchangePtr& exchange);
void tei_info(const ExchangePtr& exchange);

// ollama_routes.cpp
void ollama_embed(const ExchangePtr& exchange);
void ollama_embeddings(const ExchangePtr& exchange);
void ollama_tags(const ExchangePtr& exchange);
void ollama_ps(const ExchangePtr& exchange);
void ollama_show(const ExchangePtr& exchange);
void ollama_version(const ExchangePtr& exchange);
void ollama_root(const ExchangePtr& exchange);

// ollama_reply_routes.cpp
void ollama_generate(const ExchangePtr& exchange);
void ollama_chat(const ExchangePtr& exchange);

// cohere_routes.cpp
void cohere_embed(const ExchangePtr& exchange);
void cohere_rerank(const ExchangePtr& exchange);

// model_routes.cpp
void answer_models(const ExchangePtr& exchange);
void answer_model(const ExchangePtr& exchange);
void load_model(const ExchangePtr& exchange);
void unload_model(const ExchangePtr& exchange);

// health_routes.cpp
void answer_livez(const ExchangePtr& exchange);
void answer_readyz(const ExchangePtr& exchange);
void answer_health(const ExchangePtr& exchange);

// watch_routes.cpp
void answer_metrics(const ExchangePtr& exchange);
void answer_devices(const ExchangePtr& exchange);
void answer_decisions(const ExchangePtr& exchange);
void answer_config(const ExchangePtr& exchange);
void answer_openapi(const ExchangePtr& exchange);
void answer_openapi_json(const ExchangePtr& exchange);
void answer_gpu_stats(const ExchangePtr& exchange);

// fleet_routes.cpp: /multigpu
void answer_fleet_health(const ExchangePtr& exchange);
void answer_fleet_config(const ExchangePtr& exchange);
void change_config(const ExchangePtr& exchange);
void answer_fleet_stats(const ExchangePtr& exchange);
void answer_one_gpu(const ExchangePtr& exchange);
void answer_resources(const ExchangePtr& exchange);
void answer_performance(const ExchangePtr& exchange);

// recommendation_routes.cpp: /multigpu
void answer_recommendations(const ExchangePtr& exchange);

// admin_routes.cpp
void test_gpus(const ExchangePtr& exchange);
void manage_resources(const ExchangePtr& exchange);
void drain_device(const ExchangePtr& exchange);
void resume_device(const ExchangePtr& exchange);
void restart_device(const ExchangePtr& exchange);

}  // namespace muster
