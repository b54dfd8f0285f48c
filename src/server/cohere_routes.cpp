// The routes of Cohere, version 2.

#include <utility>

#include "server/cohere_api.h"
#include "server/compute_calls.h"
#include "server/handlers.h"
#include "server/read_call.h"

namespace muster {
namespace {

void embed_for(const ExchangePtr& exchange, CohereEmbedRequest request) {
  RowsReply reply{.fit = {.dimensions = request.call.dimensions},
                  .names = {.input = "texts", .dimensions = "output_dimension"},
                  .formats = request.formats.size()};
  reply.sections = [id = exchange->request_id, formats = std::move(request.formats)](
                       const EmbedAnswer& answer) { return cohere_sections(answer, formats, id); };
  compute_rows(exchange, std::move(request.call), std::move(reply));
}

}  // namespace

void cohere_embed(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  read_call(exchange, with_list_limits(*exchange, parse_cohere_embed), embed_for);
}

void cohere_rerank(const ExchangePtr& exchange) {
  compute_ranking(exchange, [exchange](const RerankAnswer& answer, const RerankRequest& request) {
    return cohere_ranking(answer, request, exchange->request_id);
  });
}

}  // namespace muster
