// The routes of Cohere, version 2.

#include <utility>

#include "server/cohere_api.h"
#include "server/compute_calls.h"
#include "server/handlers.h"

namespace muster {

void cohere_embed(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  const ServeOptions& options = exchange->state().options;
  auto request = parse_cohere_embed(std::move(exchange->request.body), list_limits(options),
                                    options.deadline_most);
  if (!request) return exchange->refuse(request.error());
  RowsReply reply{.fit = {.dimensions = request->call.dimensions},
                  .names = {.input = "texts", .dimensions = "output_dimension"},
                  .formats = request->formats.size()};
  reply.sections = [id = exchange->request_id, formats = std::move(request->formats)](
                       const EmbedAnswer& answer) { return cohere_sections(answer, formats, id); };
  compute_rows(exchange, std::move(request->call), std::move(reply));
}

void cohere_rerank(const ExchangePtr& exchange) {
  compute_ranking(exchange, [exchange](const RerankAnswer& answer, const RerankRequest& request) {
    return cohere_ranking(answer, request, exchange->request_id);
  });
}

}  // namespace muster
