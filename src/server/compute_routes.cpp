// /v1/embeddings, /v1/rerank and /v1/tokenize.

#include <string>
#include <utility>

#include "server/accept_header.h"
#include "server/compute_calls.h"
#include "server/handlers.h"
#include "server/openai_embeddings.h"
#include "server/read_call.h"
#include "server/rerank_api.h"
#include "server/tei_api.h"
#include "server/tokenize_api.h"

namespace muster {
namespace {

bool wants_raw(const HttpRequest& request) {
  const auto accept = request.header("Accept");
  return accept && names_type(*accept, "application/octet-stream");
}

void embed_for(const ExchangePtr& exchange, EmbeddingsRequest request) {
  const auto format = wants_raw(exchange->request) ? EmbeddingFormat::Raw : request.format;
  RowsReply reply{
      .fit = {.dimensions = request.call.dimensions, .is_normalized = request.is_normalized},
      .sections = [format](const EmbedAnswer& answer) { return openai_sections(answer, format); }};
  compute_rows(exchange, std::move(request.call), std::move(reply));
}

void count_for(const ExchangePtr& exchange, TokenizeRequest request) {
  TokenizeCall call{.options = std::move(request.options),
                    .prompt_name = std::move(request.prompt_name),
                    .texts = std::move(request.texts)};
  compute_tokens(exchange, std::move(call), {}, [](const TokenizeAnswer& answer) {
    return tokenize_form(answer.model, count_tokens(answer.texts));
  });
}

}  // namespace

void answer_embeddings(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  const ServeOptions& options = exchange->state().options;
  const EmbeddingsLimits limits{.texts_most = options.texts_most,
                                .deadline_most = options.deadline_most};
  read_call(
      exchange, [limits](std::string body) { return parse_embeddings(std::move(body), limits); },
      embed_for);
}

void answer_rerank(const ExchangePtr& exchange) { compute_ranking(exchange, rerank_response); }

// A body with the documents of Cohere, Jina, infinity and vLLM is answered as theirs, one with
// TEI's texts as TEI's.
void answer_bare_rerank(const ExchangePtr& exchange) {
  compute_ranking(exchange, [](const RerankAnswer& answer, const RerankRequest& request) {
    return request.is_tei ? tei_ranks(answer, request) : rerank_response(answer, request);
  });
}

void answer_tokenize(const ExchangePtr& exchange) {
  read_call(exchange, with_list_limits(*exchange, parse_tokenize), count_for);
}

}  // namespace muster
