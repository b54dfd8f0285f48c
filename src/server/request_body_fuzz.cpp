#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "server/cohere_api.h"
#include "server/generation_api.h"
#include "server/ollama_api.h"
#include "server/ollama_reply_api.h"
#include "server/openai_embeddings.h"
#include "server/rerank_api.h"
#include "server/score_api.h"
#include "server/search_api.h"
#include "server/tei_api.h"
#include "server/tokenize_api.h"

// Bodies from outside. Limits are short, so that what is over them is met too; whatever is taken
// keeps them and is UTF-8.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  const muster::EmbeddingsLimits limits{.texts_most = 4,
                                        .deadline_most = std::chrono::seconds(1),
                                        .text_bytes_most = 64,
                                        .ids_most = 8};
  if (auto request = muster::parse_embeddings(body, limits)) {
    const auto& call = request->call;
    MUSTER_CHECK(call.texts.empty() != call.ids.empty());
    MUSTER_CHECK(call.texts.size() + call.ids.size() <= limits.texts_most);
    for (const std::string& text : call.texts) {
      MUSTER_CHECK(text.size() <= limits.text_bytes_most && !muster::invalid_utf8_at(text));
    }
    for (const auto& ids : call.ids) MUSTER_CHECK(!ids.empty() && ids.size() <= limits.ids_most);
  }
  const muster::TextListLimits texts{.texts_most = 4, .text_bytes_most = 64};
  if (auto request = muster::parse_rerank(body, texts, limits.deadline_most)) {
    MUSTER_CHECK(!request->call.texts.empty() && request->call.texts.size() <= 4);
  }
  if (auto request = muster::parse_tokenize(body, texts, limits.deadline_most)) {
    MUSTER_CHECK(!request->texts.empty() && request->texts.size() <= 4);
  }
  const muster::InputLimits input{.texts_most = 4, .text_bytes_most = 64, .ids_most = 8};
  if (auto request = muster::parse_tei_embed(body, input, limits.deadline_most)) {
    MUSTER_CHECK(request->call.texts.empty() != request->call.ids.empty());
  }
  if (auto call = muster::parse_tei_similarity(body, texts, limits.deadline_most)) {
    MUSTER_CHECK(call->texts.size() >= 2 && call->texts.size() <= 4);
  }
  if (auto call = muster::parse_tei_tokenize(body, texts, limits.deadline_most)) {
    MUSTER_CHECK(!call->texts.empty() && call->texts.size() <= 4);
  }
  if (auto call = muster::parse_tei_decode(body, input, limits.deadline_most)) {
    MUSTER_CHECK(!call->ids.empty() && call->ids.size() <= 4);
  }
  if (auto request = muster::parse_ollama_embed(body, texts, limits.deadline_most)) {
    MUSTER_CHECK(request->call.texts.size() <= 4);
  }
  if (auto request = muster::parse_cohere_embed(body, texts, limits.deadline_most)) {
    MUSTER_CHECK(!request->formats.empty() && request->formats.size() <= 6);
  }
  if (auto request = muster::parse_score(body, texts, limits.deadline_most)) {
    MUSTER_CHECK(request->first.size() == 1 || request->first.size() == request->second.size());
  }
  if (auto request = muster::parse_search(body, texts, limits.deadline_most)) {
    MUSTER_CHECK(!request->queries.empty() && request->queries.size() <= 4);
    MUSTER_CHECK(request->rank.count <= muster::kHitsMost);
  }
  const muster::GenerationLimits replies{.prompt_bytes_most = 64,
                                         .messages_most = 4,
                                         .stops_most = 2,
                                         .stop_bytes_most = 16,
                                         .choices_most = 4};
  const auto check_choices = [](const muster::GenerationRequest& request) {
    const auto& call = request.call;
    MUSTER_CHECK(call.choice_count >= 1 && call.choice_count <= call.candidate_count);
    MUSTER_CHECK(call.candidate_count <= 4);
    MUSTER_CHECK(!request.is_stream || call.choice_count == call.candidate_count);
    MUSTER_CHECK(call.sampling.logprob_count.value_or(0) <= muster::kLogprobsMost);
    MUSTER_CHECK(!call.echoes_prompt || !call.sampling.logprob_count);
  };
  if (auto request = muster::parse_chat(body, replies)) {
    MUSTER_CHECK(!request->call.turns.empty() && request->call.turns.size() <= 4);
    MUSTER_CHECK(request->call.stops.size() <= 2);
    check_choices(*request);
  }
  if (auto request = muster::parse_completion(body, replies)) {
    MUSTER_CHECK(request->call.text.empty() != request->call.ids.empty());
    MUSTER_CHECK(request->call.token_limit.value_or(0) > 0);
    check_choices(*request);
  }
  const auto check_ollama = [](const muster::GenerationCall& call) {
    MUSTER_CHECK(call.turns.size() <= 4 && call.stops.size() <= 2);
    MUSTER_CHECK(call.turns.empty() || call.text.empty());
    MUSTER_CHECK(call.token_limit.value_or(1) > 0 && call.choice_count == 1);
    MUSTER_CHECK(call.text.size() <= 64 && !muster::invalid_utf8_at(call.text));
    for (const auto& turn : call.turns) {
      MUSTER_CHECK(turn.content.size() <= 64 && !muster::invalid_utf8_at(turn.content));
    }
  };
  if (auto request = muster::parse_ollama_generate(body, replies)) check_ollama(request->call);
  if (auto request = muster::parse_ollama_chat(body, replies)) check_ollama(request->call);
  static_cast<void>(muster::parse_ollama_show(body));
  return 0;
}
