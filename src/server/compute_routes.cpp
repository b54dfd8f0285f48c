#include <algorithm>
#include <charconv>
#include <variant>

#include "server/accept_header.h"
#include "server/embeddings_answer.h"
#include "server/handlers.h"
#include "server/openai_embeddings.h"
#include "server/rerank_api.h"
#include "server/tokenize_api.h"

namespace muster {
namespace {

// The header's deadline, where it is sooner than the body's. Errors: 400.
ApiStatus add_deadline(const Exchange& exchange, Duration most, CallOptions& options) {
  const auto header = exchange.request.header("X-Request-Timeout-Ms");
  if (!header) return Done{};
  const auto most_ms = std::chrono::duration_cast<std::chrono::milliseconds>(most).count();
  std::int64_t ms = 0;
  const char* const end = header->data() + header->size();
  const auto read = std::from_chars(header->data(), end, ms);
  if (read.ec != std::errc() || read.ptr != end || ms < 1 || ms > most_ms) {
    return wrong_field("X-Request-Timeout-Ms", "invalid_value",
                       "Invalid header 'X-Request-Timeout-Ms': expected whole milliseconds from 1 "
                       "to " +
                           std::to_string(most_ms) + ".");
  }
  const Duration limit = std::chrono::milliseconds(ms);
  options.deadline = options.deadline ? std::min(*options.deadline, limit) : limit;
  return Done{};
}

ApiStatus complete(Exchange& exchange, Duration most, CallOptions& options) {
  options.caller = exchange.caller_name;
  exchange.model = options.model;
  return add_deadline(exchange, most, options);
}

TextListLimits list_limits(const ServeOptions& options) {
  return {.texts_most = options.texts_most, .text_bytes_most = EmbeddingsLimits{}.text_bytes_most};
}

bool wants_raw(const HttpRequest& request) {
  const auto accept = request.header("Accept");
  return accept && names_type(*accept, "application/octet-stream");
}

// Many short texts have rows, and an answer, that are far longer than the body. What could not be
// held until it is sent is not computed.
ApiStatus hold_rows(Exchange& exchange, std::uint64_t text_count, const std::string& model) {
  // A text that waits: its item, its place in a batch and in the cache's list.
  constexpr std::uint64_t kBytesOfAText = 512;
  constexpr std::uint64_t kBytesOfANumber = sizeof(float) + 11;  // and "-0.1234567,"
  const std::uint64_t row_bytes = exchange.state().service.row_size(model) * kBytesOfANumber;
  const std::uint64_t bytes = text_count * (row_bytes + kBytesOfAText);
  if (bytes <= MemoryBudget::kSmallBytes || exchange.hold(bytes)) return Done{};
  ApiError full = api_error(503, "The server holds as much for its clients as it may");
  full.retry_after = std::chrono::seconds(1);
  return full;
}

ApiStatus prepare(const ExchangePtr& exchange, EmbeddingsRequest& request) {
  const ServeOptions& options = exchange->state().options;
  if (wants_raw(exchange->request)) request.format = EmbeddingFormat::Raw;
  MUSTER_TRY(complete(*exchange, options.deadline_most, request.call.options));
  const auto text_count = request.call.texts.size() + request.call.ids.size();
  exchange->text_count = text_count;
  return hold_rows(*exchange, text_count, request.call.options.model);
}

// In one go where that is short, else a slice a turn of the loop.
void write_answer(const ExchangePtr& exchange, EmbeddingsAnswer answer) {
  constexpr std::size_t kValuesOfASlice = 1 << 15;  // as numbers about a millisecond
  if (answer.value_count() <= kValuesOfASlice) {
    answer.write(kValuesOfASlice);
    return exchange->answer(answer.take());
  }
  const auto left = std::make_shared<EmbeddingsAnswer>(std::move(answer));
  exchange->state().tasks->add([exchange, left] {
    if (exchange->is_answered()) return false;  // the client has gone
    if (!left->write(kValuesOfASlice)) return true;
    exchange->answer(left->take());
    return false;
  });
}

// Cancels the call when the client goes; `id` is what the service gave for it.
void cancel_with_client(const ExchangePtr& exchange, CallId id) {
  exchange->on_client_gone([&service = exchange->state().service, id] { service.cancel(id); });
}

}  // namespace

void answer_embeddings(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  const ServeOptions& options = exchange->state().options;
  auto request =
      parse_embeddings(std::move(exchange->request.body),
                       {.texts_most = options.texts_most, .deadline_most = options.deadline_most});
  if (!request) return exchange->refuse(request.error());
  if (const auto ready = prepare(exchange, *request); !ready) {
    return exchange->refuse(ready.error());
  }
  const auto on_done = [exchange, format = request->format, dimensions = request->call.dimensions](
                           std::variant<EmbedAnswer, CallError> outcome) {
    if (const auto* error = std::get_if<CallError>(&outcome)) {
      return exchange->refuse(embeddings_error(*error));
    }
    auto& answer = *std::get_if<EmbedAnswer>(&outcome);
    exchange->model = answer.model;
    exchange->token_count = answer.token_count;
    write_answer(exchange, EmbeddingsAnswer(std::move(answer), format, dimensions));
  };
  cancel_with_client(exchange, exchange->state().service.embed(std::move(request->call), on_done));
}

void answer_rerank(const ExchangePtr& exchange) {
  exchange->state().service.expect_call();
  const ServeOptions& options = exchange->state().options;
  auto parsed =
      parse_rerank(std::move(exchange->request.body), list_limits(options), options.deadline_most);
  if (!parsed) return exchange->refuse(parsed.error());
  const auto request = std::make_shared<RerankRequest>(*std::move(parsed));
  if (const auto ready = complete(*exchange, options.deadline_most, request->call.options);
      !ready) {
    return exchange->refuse(ready.error());
  }
  exchange->text_count = request->call.texts.size();
  RerankCall call = request->call;
  if (!request->return_documents) request->call = {};
  const auto on_done = [exchange, request](const std::variant<RerankAnswer, CallError>& outcome) {
    if (const auto* error = std::get_if<CallError>(&outcome)) {
      return exchange->refuse(api_error(*error));
    }
    const auto& answer = *std::get_if<RerankAnswer>(&outcome);
    exchange->model = answer.model;
    exchange->token_count = answer.token_count;
    exchange->answer(rerank_response(answer, *request));
  };
  cancel_with_client(exchange, exchange->state().service.rerank(std::move(call), on_done));
}

void answer_tokenize(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  auto request = parse_tokenize(std::move(exchange->request.body), list_limits(state.options),
                                state.options.deadline_most);
  if (!request) return exchange->refuse(request.error());
  if (const auto ready = complete(*exchange, state.options.deadline_most, request->options);
      !ready) {
    return exchange->refuse(ready.error());
  }
  exchange->text_count = request->texts.size();
  const auto on_done = [exchange](const std::variant<TokenizeAnswer, CallError>& outcome) {
    if (const auto* error = std::get_if<CallError>(&outcome)) {
      return exchange->refuse(api_error(*error));
    }
    const auto& answer = *std::get_if<TokenizeAnswer>(&outcome);
    exchange->model = answer.model;
    exchange->answer(tokenize_response(answer.model, answer.texts));
  };
  TokenizeCall call{.options = std::move(request->options),
                    .prompt_name = std::move(request->prompt_name),
                    .texts = std::move(request->texts)};
  cancel_with_client(exchange, state.service.tokenize(std::move(call), on_done));
}

}  // namespace muster
