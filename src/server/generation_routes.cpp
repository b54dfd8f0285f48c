// Replies over HTTP. A stream begins with its first token, so that what goes wrong before that has
// its own status. While a client reads slowly, what further tokens bring is kept here for each
// choice and goes out as one part when there is room: a slow reader gets fewer and longer parts.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/wall_clock.h"
#include "net/memory_budget.h"
#include "server/compute_calls.h"
#include "server/generation_answer.h"
#include "server/generation_api.h"
#include "server/handlers.h"
#include "server/logprobs_json.h"
#include "server/read_call.h"
#include "serving/generation_service.h"

namespace muster {
namespace {

// Of one choice that a slow client has not taken. What is more is written all the same: it counts
// for the server's memory then, and who takes nothing is cut off.
constexpr std::size_t kKeptMost = 256 << 10;

// Of a whole answer a part of the most that it may take is held from the start, and more of it in
// pieces as it comes: few replies have their limit of tokens, and a request that held all of that
// would keep others out for as long as it runs.
constexpr std::uint64_t kHeldAtFirst = 4;  // a quarter
constexpr std::uint64_t kHeldPiece = 256 << 10;

/// One request from its body to the end of its answer. Owned by what the service calls.
class ReplyAnswer : public std::enable_shared_from_this<ReplyAnswer> {
 public:
  ReplyAnswer(ExchangePtr exchange, const GenerationRequest& request)
      : exchange_(std::move(exchange)),
        is_chat_(request.is_chat),
        is_stream_(request.is_stream),
        has_logprobs_(request.call.sampling.logprob_count.has_value()),
        is_ranked_(request.call.candidate_count > request.call.choice_count),
        choices_(std::max(request.call.choice_count, request.call.candidate_count),
                 Choice{.logprobs = LogprobsJson(is_chat_)}),
        answer_(GenerationAnswer::Head{.request_id = exchange_->request_id,
                                       .model = request.call.model,
                                       .created = static_cast<std::int64_t>(unix_seconds()),
                                       .is_chat = request.is_chat,
                                       .includes_usage = request.includes_usage}) {}

  /// Of a whole answer: what is held for it, and how its call is cancelled where more is not to be
  /// had.
  void set_held(std::uint64_t bytes) { held_bytes_ = bytes; }
  void set_cancel(std::function<void()> cancel) { cancel_ = std::move(cancel); }

  GenerationSink events() {
    const auto self = shared_from_this();
    return {.on_part = [self](const ReplyPart& part,
                              const GenerationUsage& usage) { self->on_part(part, usage); },
            .on_choice_end = [self](std::uint32_t choice,
                                    FinishReason reason) { self->on_choice_end(choice, reason); },
            .on_end = [self](const GenerationEnd& end) { self->on_end(end); },
            .on_failed = [self](const CallError& error) { self->on_failed(error); }};
  }

 private:
  /// What has come of one reply, and of a stream what is not sent of it.
  struct Choice {
    std::string text = {};
    LogprobsJson logprobs;
    FinishReason reason = FinishReason::Stop;
  };

  void on_part(const ReplyPart& part, const GenerationUsage& usage) {
    count(usage);
    auto& choice = choices_[part.choice];
    if (is_stream_) begin();
    const auto kept = choice.logprobs.size();
    choice.text += part.text;
    if (part.token != nullptr) choice.logprobs.add(*part.token);
    if (!is_stream_) return keep(part.text.size() + choice.logprobs.size() - kept);
    const bool is_much = choice.text.size() + choice.logprobs.size() > kKeptMost;
    if (has_room_ || is_much) write_choice(part.choice);
  }

  // Of a whole answer, until its end.
  void keep(std::uint64_t bytes) {
    kept_bytes_ += bytes;
    while (kept_bytes_ > held_bytes_) {
      if (const auto held = hold_bytes(*exchange_, kHeldPiece); !held) {
        exchange_->refuse(held.error());
        return cancel_();
      }
      held_bytes_ += kHeldPiece;
    }
  }

  void on_choice_end(std::uint32_t index, FinishReason reason) {
    choices_[index].reason = reason;
    if (!is_stream_) return;
    begin();
    write_choice(index);
    has_room_ = exchange_->write(answer_.finish_event(index, reason));
  }

  void on_end(const GenerationEnd& end) {
    count(end.usage);
    if (!is_stream_) return answer_whole(end);
    exchange_->write(answer_.last_events(end.usage));
    exchange_->end_stream();
  }

  void answer_whole(const GenerationEnd& end) {
    auto body = answer_.whole_begin();
    std::uint32_t index = 0;
    for (const auto from : end.choices) {
      auto& choice = choices_[from];
      const auto logprobs = has_logprobs_ ? choice.logprobs.take() : "null";
      answer_.append_choice({.index = index++, .text = choice.text, .logprobs = logprobs},
                            choice.reason, body);
    }
    body += GenerationAnswer::whole_end(end.usage);
    exchange_->answer({.status = 200, .content_type = "application/json", .body = std::move(body)});
  }

  // Known for the audit log however the reply ends, with its client too.
  void count(const GenerationUsage& usage) {
    exchange_->token_count = std::uint64_t{usage.prompt_tokens} + usage.reply_tokens;
  }

  void on_failed(const CallError& error) {
    const auto refusal = error_of(error);
    if (!has_begun_) return exchange_->refuse(refusal);
    write_choices();
    exchange_->write(GenerationAnswer::error_events(refusal));
    exchange_->end_stream(&refusal);
  }

  // What the fault of a prompt is about is named as the body names it. A template that refuses it,
  // or that it takes beyond a limit, would do so again: nobody should come again with it.
  ApiError error_of(const CallError& error) const {
    const auto name = name_of(error.field);
    if (name.empty()) return api_error(error);
    const bool is_length = error.field == CallField::PromptLength;
    return wrong_field(name, is_length ? "context_length_exceeded" : "invalid_value",
                       fmt::format("Invalid '{}': {}.", name, error.error.message));
  }

  // Empty: none of the body's.
  std::string_view name_of(CallField field) const {
    switch (field) {
      case CallField::Prompt:
      case CallField::PromptLength:
        return is_chat_ ? "messages" : "prompt";
      case CallField::LogitBias:
        return "logit_bias";
      case CallField::Choices:
        return is_ranked_ ? "best_of" : "n";
      case CallField::TokenIds:
      case CallField::Dimensions:
      case CallField::Normalize:
      case CallField::Other:
        break;
    }
    return {};
  }

  void begin() {
    if (std::exchange(has_begun_, true)) return;
    HttpResponse head{
        .status = 200, .content_type = "text/event-stream; charset=utf-8", .body = {}};
    head.headers.emplace_back("Cache-Control", "no-cache");
    head.headers.emplace_back("X-Accel-Buffering", "no");  // nginx would hold parts back
    head.body = answer_.first_events(static_cast<std::uint32_t>(choices_.size()));
    exchange_->begin_stream(std::move(head), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->has_room_ = true;
      self->write_choices();
    });
  }

  // Nothing where nothing is new. A token may come without a text of its own: the beginning of a
  // character, or of a stop string.
  void write_choice(std::uint32_t index) {
    auto& choice = choices_[index];
    if (choice.text.empty() && choice.logprobs.is_empty()) return;
    const auto text = std::exchange(choice.text, {});
    const auto logprobs = choice.logprobs.is_empty() ? "null" : choice.logprobs.take();
    has_room_ =
        exchange_->write(answer_.text_event({.index = index, .text = text, .logprobs = logprobs}));
  }

  void write_choices() {
    for (std::uint32_t i = 0; i < choices_.size(); ++i) write_choice(i);
  }

  const ExchangePtr exchange_;
  const bool is_chat_;
  const bool is_stream_;
  const bool has_logprobs_;
  const bool is_ranked_;  // more replies are computed than are wanted
  std::vector<Choice> choices_;
  const GenerationAnswer answer_;
  bool has_begun_ = false;
  bool has_room_ = true;
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t held_bytes_ = 0;
  std::function<void()> cancel_;
};

// A model of the other service, which is asked to generate.
std::optional<ApiError> other_task(Exchange& exchange, const std::string& name) {
  for (const auto& model : exchange.state().service.models()) {
    if (model.name != name) continue;
    if (model.task == ModelTask::Embed) return wrong_task(name, "embeds", "/v1/embeddings");
    return wrong_task(name, "reranks", "/v1/rerank");
  }
  return std::nullopt;
}

// What is held at first of what is kept of a whole answer until its end; a stream keeps little.
// What could never be held is not computed: with log-probabilities an answer is far longer than its
// text.
ApiResult<std::uint64_t> hold_answer(Exchange& exchange, const GenerationCall& call,
                                     std::uint32_t length_max) {
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
  const auto all = std::max(call.choice_count, call.candidate_count) * (echo + tokens * bytes);
  const auto most = MemoryBudget::most_of_one(exchange.state().http->memory().most());
  if (all <= most) {
    MUSTER_TRY(hold_bytes(exchange, all / kHeldAtFirst));
    return std::max(all / kHeldAtFirst, MemoryBudget::kSmallBytes);
  }
  return wrong_field("max_tokens", "invalid_value",
                     fmt::format("Invalid 'max_tokens': the answer may take {} with its choices, "
                                 "echo and log-probabilities, and the server holds {} for a "
                                 "request.",
                                 human_bytes(all), human_bytes(most)));
}

void answer_reply(const ExchangePtr& exchange, GenerationRequest request) {
  auto& service = exchange->state().generation;
  auto& call = request.call;
  exchange->model = call.model;
  exchange->text_count = 1;
  if (call.model.empty()) {  // as elsewhere the first one, and the answer names it
    const auto models = service.models();
    if (!models.empty()) call.model = models.front().name;
    exchange->model = call.model;
  }
  if (!service.has_model(call.model)) {
    if (const auto other = other_task(*exchange, call.model)) return exchange->refuse(*other);
  }
  auto deadline = deadline_of(*exchange);
  if (!deadline) return exchange->refuse(deadline.error());
  call.deadline = *deadline;
  call.caller = exchange->caller_name;
  const auto answer = std::make_shared<ReplyAnswer>(exchange, request);
  if (!request.is_stream) {
    auto held = hold_answer(*exchange, call, service.length_max(call.model));
    if (!held) return exchange->refuse(held.error());
    answer->set_held(*held);
  }
  const auto id = service.generate(std::move(call), answer->events());
  const auto cancel = [&service, id] { service.cancel(id); };
  answer->set_cancel(cancel);
  exchange->on_client_gone(cancel);
}

template <typename Parse>
void answer_body(const ExchangePtr& exchange, Parse parse) {
  read_call(
      exchange, [parse](std::string body) { return parse(std::move(body), {}); }, answer_reply);
}

}  // namespace

void answer_chat(const ExchangePtr& exchange) { answer_body(exchange, parse_chat); }

void answer_completion(const ExchangePtr& exchange) { answer_body(exchange, parse_completion); }

}  // namespace muster
