// What every API for vectors, scores and tokens does with a body that has been read.

#include "server/compute_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>
#include <variant>

#include "server/float_text.h"
#include "server/read_call.h"
#include "server/routes.h"
#include "serving/generation_service.h"

namespace muster {
namespace {

// In one go where that is short, else a slice a turn of the loop.
void write_answer(const ExchangePtr& exchange, RowsAnswer&& answer) {
  constexpr std::size_t kValuesOfASlice = 1 << 15;  // as numbers about a millisecond
  if (answer.value_count() <= kValuesOfASlice) {
    while (!answer.write(kValuesOfASlice)) continue;
    return exchange->answer(answer.take());
  }
  const auto left = std::make_shared<RowsAnswer>(std::move(answer));
  exchange->state().tasks->add([exchange, left] {
    if (exchange->is_answered()) return false;  // the client has gone
    if (!left->write(kValuesOfASlice)) return true;
    exchange->answer(left->take());
    return false;
  });
}

void write_tokens(const ExchangePtr& exchange, TokensAnswer answer) {
  constexpr std::size_t kTokensOfASlice = 1 << 14;  // as JSON with their pieces about a millisecond
  if (answer.write(kTokensOfASlice)) return exchange->answer(answer.take());
  const auto left = std::make_shared<TokensAnswer>(std::move(answer));
  exchange->state().tasks->add([exchange, left] {
    if (exchange->is_answered()) return false;  // the client has gone
    if (!left->write(kTokensOfASlice)) return true;
    exchange->answer(left->take());
    return false;
  });
}

// The ids of a text, their pieces and what stands for them in the answer are longer than the text;
// so is the text of ids.
ApiStatus hold_tokens(Exchange& exchange, const TokenizeCall& call) {
  constexpr std::uint64_t kBytesOfAnId = 16;     // in memory and in the answer
  constexpr std::uint64_t kBytesOfAPiece = 144;  // the same of its text
  constexpr std::uint64_t kBytesOfAText = 512;
  constexpr std::uint64_t kSpecial = 8;  // tokens around a text, or of a prompt
  std::uint64_t length_most = 0;
  for (const auto& model : exchange.state().service.models()) {
    length_most = std::max<std::uint64_t>(length_most, model.length_max);
  }
  std::uint64_t token_count = 0;
  for (const auto& text : call.texts) {
    token_count += std::min<std::uint64_t>(length_most, text.size() + kSpecial);
  }
  for (const auto& ids : call.ids) token_count += ids.size();
  const std::uint64_t bytes = kBytesOfAnId + (call.wants_pieces ? kBytesOfAPiece : 0);
  return hold_bytes(exchange,
                    token_count * bytes + (call.texts.size() + call.ids.size()) * kBytesOfAText);
}

// Cancels the call when the client goes; `id` is what the service gave for it.
void cancel_with_client(const ExchangePtr& exchange, CallId id) {
  exchange->on_client_gone([&service = exchange->state().service, id] { service.cancel(id); });
}

// Gives the service a call for vectors. One of many texts has a turn of the loop for itself:
// looking for the vectors of 2,048 texts takes 2 ms where they are in the cache, and several such
// calls may come in one turn (measured on 2026-11-27, two cores with AVX512).
template <typename OnDone>
void begin_embedding(const ExchangePtr& exchange, EmbedCall&& call, OnDone on_done) {
  constexpr std::size_t kTextsAtOnce = 256;
  if (exchange->text_count.value_or(0) <= kTextsAtOnce) {
    return cancel_with_client(exchange,
                              exchange->state().service.embed(std::move(call), std::move(on_done)));
  }
  exchange->on_client_gone([] {});
  const auto waiting = std::make_shared<EmbedCall>(std::move(call));
  exchange->state().tasks->add([exchange, waiting, on_done = std::move(on_done)] {
    if (exchange->is_answered()) return false;  // the client has gone
    cancel_with_client(exchange, exchange->state().service.embed(std::move(*waiting), on_done));
    return false;
  });
}

// Has vectors computed. `on_rows` is kept within what the service calls: one piece of memory for
// both.
template <typename OnRows>
void compute_vectors(const ExchangePtr& exchange, EmbedCall&& call, CallFieldNames names,
                     std::uint64_t formats, OnRows on_rows) {
  if (const auto ready = complete(*exchange, call.options); !ready) {
    return exchange->refuse(ready.error());
  }
  const auto text_count = call.texts.size() + call.ids.size();
  exchange->text_count = text_count;
  const auto room = hold_rows(*exchange, text_count, call.options.model, formats);
  if (!room) return exchange->refuse(room.error());
  using Outcome = std::variant<EmbedAnswer, CallError>;
  auto on_done = [exchange, names, on_rows = std::move(on_rows)](Outcome outcome) {
    if (const auto* error = std::get_if<CallError>(&outcome)) {
      return exchange->refuse(call_error(*error, names));
    }
    auto& answer = *std::get_if<EmbedAnswer>(&outcome);
    exchange->model = answer.model;
    exchange->token_count = answer.token_count;
    if (answer.dim == 0 || !are_finite(answer.rows)) {
      return exchange->refuse(api_error(500, "The model gave a vector that is not finite."));
    }
    on_rows(exchange, answer);
  };
  begin_embedding(exchange, std::move(call), std::move(on_done));
}

}  // namespace

InputLimits input_limits(const ServeOptions& options) { return {.texts_most = options.texts_most}; }

TextListLimits list_limits(const ServeOptions& options) {
  return {.texts_most = options.texts_most, .text_bytes_most = InputLimits{}.text_bytes_most};
}

ApiError wrong_task(const std::string& model, std::string_view task, std::string_view routes) {
  return wrong_field("model", "invalid_value",
                     fmt::format("Invalid 'model': {} {}; ask it at {}.", model, task, routes));
}

ApiResult<std::optional<Duration>> deadline_of(Exchange& exchange) {
  const auto header = exchange.request.header("X-Request-Timeout-Ms");
  if (!header) return std::optional<Duration>();
  const auto most = exchange.state().options.deadline_most;
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
  return std::optional<Duration>(std::chrono::milliseconds(ms));
}

ApiStatus complete(Exchange& exchange, CallOptions& options) {
  // The service behind these routes does not know of the decoders.
  if (exchange.state().generation.has_model(options.model)) {
    const bool is_ollamas = exchange.route().errors == ErrorForm::Ollama;
    return wrong_task(
        options.model, "generates",
        is_ollamas ? "/api/chat or /api/generate" : "/v1/chat/completions or /v1/completions");
  }
  options.caller = exchange.caller_name;
  exchange.model = options.model;
  const auto limit = MUSTER_TRY(deadline_of(exchange));
  if (limit) options.deadline = std::min(options.deadline.value_or(*limit), *limit);
  return Done{};
}

ApiError call_error(const CallError& error, const CallFieldNames& names) {
  const auto invalid = [&](std::string_view name) {
    return wrong_field(name, "invalid_value",
                       fmt::format("Invalid '{}': {}.", name, error.error.message));
  };
  switch (error.field) {
    case CallField::TokenIds:
      return unknown_ids(names.input, error.error.message);
    case CallField::Dimensions:
      return invalid(names.dimensions);
    case CallField::Normalize:
      return invalid(names.normalize);
    case CallField::Prompt:
    case CallField::PromptLength:
    case CallField::LogitBias:
    case CallField::Choices:
    case CallField::Other:
      break;
  }
  return api_error(error);
}

ApiStatus hold_bytes(Exchange& exchange, std::uint64_t bytes) {
  if (bytes <= MemoryBudget::kSmallBytes || exchange.hold(bytes)) return Done{};
  ApiError full = api_error(503, "The server holds as much for its clients as it may");
  full.retry_after = std::chrono::seconds(1);
  return full;
}

ApiStatus hold_rows(Exchange& exchange, std::uint64_t text_count, const std::string& model,
                    std::uint64_t formats) {
  // A text that waits: its item, its place in a batch and in the cache's list.
  constexpr std::uint64_t kBytesOfAText = 512;
  constexpr std::uint64_t kBytesOfANumber = 11;  // "-0.1234567,"
  const std::uint64_t row_bytes =
      exchange.state().service.row_size(model) * (sizeof(float) + kBytesOfANumber * formats);
  return hold_bytes(exchange, text_count * (row_bytes + kBytesOfAText));
}

void compute_from_rows(const ExchangePtr& exchange, EmbedCall&& call, CallFieldNames names,
                       std::function<void(EmbedAnswer)> on_rows, std::uint64_t formats) {
  compute_vectors(
      exchange, std::move(call), names, formats,
      [on_rows = std::move(on_rows)](const ExchangePtr& /*exchange*/, EmbedAnswer& answer) {
        on_rows(std::move(answer));
      });
}

void compute_rows(const ExchangePtr& exchange, EmbedCall&& call, RowsReply&& reply) {
  const auto formats = reply.formats;
  compute_vectors(exchange, std::move(call), reply.names, formats,
                  [fit = reply.fit, sections = std::move(reply.sections)](const ExchangePtr& asker,
                                                                          EmbedAnswer& answer) {
                    fit_rows(answer, fit);
                    auto made = sections(answer);
                    write_answer(asker,
                                 RowsAnswer(std::move(answer.rows), answer.dim, std::move(made)));
                  });
}

void compute_scores(const ExchangePtr& exchange, RerankCall call,
                    std::function<void(const RerankAnswer&)> on_scores) {
  if (const auto ready = complete(*exchange, call.options); !ready) {
    return exchange->refuse(ready.error());
  }
  exchange->text_count = call.texts.size();
  const auto on_done = [exchange, on_scores = std::move(on_scores)](
                           const std::variant<RerankAnswer, CallError>& outcome) {
    if (const auto* error = std::get_if<CallError>(&outcome)) {
      return exchange->refuse(api_error(*error));
    }
    const auto& answer = *std::get_if<RerankAnswer>(&outcome);
    exchange->model = answer.model;
    exchange->token_count = answer.token_count;
    if (!are_finite(answer.scores)) {
      return exchange->refuse(api_error(500, "The model gave a score that is not finite."));
    }
    on_scores(answer);
  };
  cancel_with_client(exchange, exchange->state().service.rerank(std::move(call), on_done));
}

namespace {

using OnRanked = std::function<HttpResponse(const RerankAnswer&, const RerankRequest&)>;

void rank_for(const ExchangePtr& exchange, RerankRequest read, const OnRanked& on_ranked) {
  const auto request = std::make_shared<RerankRequest>(std::move(read));
  // On TEI's path a body of the others has their errors.
  const bool is_tei_path = error_form_of(exchange->request.path) == ErrorForm::Tei;
  if (is_tei_path && !request->is_tei) exchange->error_form = ErrorForm::OpenAi;
  RerankCall call = request->return_documents ? request->call : std::move(request->call);
  compute_scores(exchange, std::move(call), [exchange, request, on_ranked](const auto& answer) {
    exchange->answer(on_ranked(answer, *request));
  });
}

}  // namespace

void compute_ranking(
    const ExchangePtr& exchange,
    std::function<HttpResponse(const RerankAnswer&, const RerankRequest&)> on_ranked) {
  exchange->state().service.expect_call();
  read_call(exchange, with_list_limits(*exchange, parse_rerank),
            [on_ranked = std::move(on_ranked)](const ExchangePtr& asker, RerankRequest request) {
              rank_for(asker, std::move(request), on_ranked);
            });
}

void compute_tokens(const ExchangePtr& exchange, TokenizeCall call, CallFieldNames names,
                    std::function<TokensForm(const TokenizeAnswer&)> form_of) {
  if (const auto ready = complete(*exchange, call.options); !ready) {
    return exchange->refuse(ready.error());
  }
  exchange->text_count = call.texts.size() + call.ids.size();
  if (const auto room = hold_tokens(*exchange, call); !room) {
    return exchange->refuse(room.error());
  }
  const auto on_done = [exchange, names, form_of = std::move(form_of)](
                           std::variant<TokenizeAnswer, CallError> outcome) {
    if (const auto* error = std::get_if<CallError>(&outcome)) {
      return exchange->refuse(call_error(*error, names));
    }
    auto& answer = *std::get_if<TokenizeAnswer>(&outcome);
    exchange->model = answer.model;
    auto form = form_of(answer);
    write_tokens(exchange, TokensAnswer(std::move(answer.texts), std::move(form)));
  };
  cancel_with_client(exchange, exchange->state().service.tokenize(std::move(call), on_done));
}

}  // namespace muster
