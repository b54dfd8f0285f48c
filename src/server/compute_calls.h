#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/call_fields.h"
#include "server/call_input.h"
#include "server/exchange.h"
#include "server/rerank_api.h"
#include "server/rows_answer.h"
#include "server/tokens_answer.h"

namespace muster {

// What every API for vectors, scores and tokens does with a body that has been read. The service's
// admission, the keys' limits, the cache and the audit log are the same for all of them.

InputLimits input_limits(const ServeOptions& options);
TextListLimits list_limits(const ServeOptions& options);

/// `parse` with the limits of the server as they are now, for read_call.
template <typename Parse, typename Limits>
auto with_limits(Exchange& exchange, const Limits& limits, Parse parse) {
  return [parse, limits, most = exchange.state().options.deadline_most](std::string body) {
    return parse(std::move(body), limits, most);
  };
}
template <typename Parse>
auto with_list_limits(Exchange& exchange, Parse parse) {
  return with_limits(exchange, list_limits(exchange.state().options), parse);
}

/// The refusal of a served model that is asked for what it does not do: `task` is what it does
/// ("generates"), `routes` where.
ApiError wrong_task(const std::string& model, std::string_view task, std::string_view routes);

/// What the header X-Request-Timeout-Ms says; nullopt without one. Errors: 400.
ApiResult<std::optional<Duration>> deadline_of(Exchange& exchange);

/// What the request itself adds to a call: who asks, and the header's deadline where it is sooner.
///
/// Errors: 400, also for the name of a decoder.
ApiStatus complete(Exchange& exchange, CallOptions& options);

/// How the fields are called in the body, for messages.
struct CallFieldNames {
  std::string_view input = "input";
  std::string_view dimensions = "dimensions";
  std::string_view normalize = "normalized";
};

/// Why the service did not do a call, naming the field of the body.
ApiError call_error(const CallError& error, const CallFieldNames& names = {});

/// Holds so many bytes for the request until its answer is sent. Errors: 503 where there is no
/// room. Cost: none where there is little to hold.
ApiStatus hold_bytes(Exchange& exchange, std::uint64_t bytes);

/// Bytes that rows of this model take until their answer is sent, held for the request. What could
/// not be held is not computed: many short texts have rows, and an answer, far longer than the
/// body.
///
/// formats: how many times each row is written.
/// Errors: 503.
ApiStatus hold_rows(Exchange& exchange, std::uint64_t text_count, const std::string& model,
                    std::uint64_t formats = 1);

/// How rows become an answer.
struct RowsReply {
  RowFit fit = {};
  std::function<std::vector<RowSection>(const EmbedAnswer&)> sections = {};
  CallFieldNames names = {};
  std::uint64_t formats = 1;
};

/// Has vectors computed and answers with them, a slice a turn of the loop where that is long.
void compute_rows(const ExchangePtr& exchange, EmbedCall&& call, RowsReply&& reply);

/// The same for an answer that is not the rows: they are finite.
void compute_from_rows(const ExchangePtr& exchange, EmbedCall&& call, CallFieldNames names,
                       std::function<void(EmbedAnswer)> on_rows, std::uint64_t formats = 1);

void compute_scores(const ExchangePtr& exchange, RerankCall call,
                    std::function<void(const RerankAnswer&)> on_scores);

/// Reads a body of parse_rerank, has its documents scored and answers with what `on_ranked` makes
/// of it. The texts are kept where they are to be returned.
void compute_ranking(
    const ExchangePtr& exchange,
    std::function<HttpResponse(const RerankAnswer&, const RerankRequest&)> on_ranked);

/// Has texts tokenised, or ids decoded, and answers in the form that `form_of` gives, a slice a
/// turn of the loop where that is long. What the answer takes is held until it is sent.
void compute_tokens(const ExchangePtr& exchange, TokenizeCall call, CallFieldNames names,
                    std::function<TokensForm(const TokenizeAnswer&)> form_of);

}  // namespace muster
