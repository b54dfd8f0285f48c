// What lies between a body for a reply and the service. What a whole answer may take is reckoned
// before anything is computed; how much of it is held at once is a balance between answers that
// find no room in the middle and requests that keep others out.

#include "server/reply_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "net/memory_budget.h"
#include "server/compute_calls.h"

namespace muster {
namespace {

constexpr std::uint64_t kHeldAtFirst = 4;  // a quarter
constexpr std::uint64_t kHeldPiece = 256 << 10;

// A model of the other service, which is asked to generate.
std::optional<ApiError> other_task(Exchange& exchange, const std::string& name) {
  for (const auto& model : exchange.state().service.models()) {
    if (model.name != name) continue;
    const bool is_ollamas = exchange.route().errors == ErrorForm::Ollama;
    const auto embeds = is_ollamas ? "/api/embed" : "/v1/embeddings";
    if (model.task == ModelTask::Embed) return wrong_task(name, "embeds", embeds);
    return wrong_task(name, "reranks", "/v1/rerank");
  }
  return std::nullopt;
}

// The most that a whole answer may take.
std::uint64_t answer_bytes(const GenerationCall& call, std::uint32_t length_max) {
  constexpr std::uint64_t kBytesOfAText = 8;      // of a token, as JSON
  constexpr std::uint64_t kBytesOfALogprob = 96;  // one of eight letters, with name and bytes
  // A scored prompt has as many tokens as it has bytes, at most.
  const std::uint64_t scored = call.scores_prompt() ? call.text.size() + call.ids.size() : 0;
  const std::uint64_t tokens =
      std::min<std::uint64_t>(length_max, call.token_limit.value_or(length_max) + scored);
  const auto& top = call.sampling.logprob_count;
  const auto bytes = kBytesOfAText + (top ? (1 + *top) * kBytesOfALogprob : 0);
  // A scored prompt stands in the lists as well: as tokens, and among the likeliest of each place.
  const std::uint64_t times = call.scores_prompt() ? 3 : 1;
  const auto echo =
      call.echoes_prompt ? times * (call.text.size() + call.ids.size() * kBytesOfAText) : 0;
  return call.computed_count() * (echo + tokens * bytes);
}

// Empty: none of the body's.
std::string_view name_of(CallField field, const ReplyFieldNames& names) {
  switch (field) {
    case CallField::Prompt:
    case CallField::PromptLength:
      return names.prompt;
    case CallField::LogitBias:
      return "logit_bias";
    case CallField::Choices:
      return names.choices;
    case CallField::TokenIds:
    case CallField::Dimensions:
    case CallField::Normalize:
    case CallField::Other:
      break;
  }
  return {};
}

}  // namespace

ApiStatus complete_reply(Exchange& exchange, GenerationCall& call) {
  auto& service = exchange.state().generation;
  exchange.text_count = 1;
  if (call.model.empty()) {  // as elsewhere the first one, and the answer names it
    const auto models = service.models();
    if (!models.empty()) call.model = models.front().name;
  }
  exchange.model = call.model;
  if (!service.has_model(call.model)) {
    if (const auto other = other_task(exchange, call.model)) return *other;
  }
  call.deadline = MUSTER_TRY(deadline_of(exchange));
  call.caller = exchange.caller_name;
  return Done{};
}

ApiError reply_error(const CallError& error, const ReplyFieldNames& names) {
  const auto name = name_of(error.field, names);
  if (name.empty()) return api_error(error);
  const bool is_length = error.field == CallField::PromptLength;
  return wrong_field(name, is_length ? "context_length_exceeded" : "invalid_value",
                     fmt::format("Invalid '{}': {}.", name, error.error.message));
}

ApiResult<HeldReply> HeldReply::hold(Exchange& exchange, std::span<const GenerationCall> calls,
                                     const ReplyFieldNames& names) {
  const auto length_max = exchange.state().generation.length_max(calls.front().model);
  std::uint64_t all = 0;
  for (const auto& call : calls) all += answer_bytes(call, length_max);
  const auto most = MemoryBudget::most_of_one(exchange.state().http->memory().most());
  if (all > most) {
    return wrong_field(
        names.token_limit, "invalid_value",
        fmt::format("Invalid '{}': the answer may take {} with its choices, echo and "
                    "log-probabilities, and the server holds {} for a request.",
                    names.token_limit, human_bytes(all), human_bytes(most)));
  }
  MUSTER_TRY(hold_bytes(exchange, all / kHeldAtFirst));
  HeldReply held;
  held.held_bytes_ = std::max(all / kHeldAtFirst, MemoryBudget::kSmallBytes);
  return held;
}

ApiStatus HeldReply::keep(Exchange& exchange, std::uint64_t bytes) {
  kept_bytes_ += bytes;
  while (kept_bytes_ > held_bytes_) {
    MUSTER_TRY(hold_bytes(exchange, kHeldPiece));
    held_bytes_ += kHeldPiece;
  }
  return Done{};
}

HttpResponse reply_stream_head(std::string_view content_type) {
  HttpResponse head{.status = 200, .content_type = content_type, .body = {}};
  head.headers.emplace_back("Cache-Control", "no-cache");
  head.headers.emplace_back("X-Accel-Buffering", "no");  // nginx would hold parts back
  return head;
}

void count_reply_tokens(Exchange& exchange, const GenerationUsage& usage) {
  exchange.token_count = std::uint64_t{usage.prompt_tokens} + usage.reply_tokens;
}

std::function<void()> begin_reply(const ExchangePtr& exchange, GenerationCall call,
                                  GenerationSink events) {
  auto& service = exchange->state().generation;
  const auto id = service.generate(std::move(call), std::move(events));
  const auto cancel = [&service, id] { service.cancel(id); };
  exchange->on_client_gone(cancel);
  return cancel;
}

}  // namespace muster
