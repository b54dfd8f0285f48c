// Replies over HTTP. A stream begins with its first token, so that what goes wrong before that has
// its own status. While a client reads slowly, the text of further tokens is kept here and goes out
// as one part when there is room: a slow reader gets fewer and longer parts.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/wall_clock.h"
#include "server/compute_calls.h"
#include "server/generation_answer.h"
#include "server/generation_api.h"
#include "server/handlers.h"
#include "serving/generation_service.h"

namespace muster {
namespace {

/// One request from its body to the end of its answer. Owned by what the service calls.
class ReplyAnswer : public std::enable_shared_from_this<ReplyAnswer> {
 public:
  ReplyAnswer(ExchangePtr exchange, const GenerationRequest& request)
      : exchange_(std::move(exchange)),
        is_chat_(request.is_chat),
        is_stream_(request.is_stream),
        answer_(GenerationAnswer::Head{.request_id = exchange_->request_id,
                                       .model = request.call.model,
                                       .created = static_cast<std::int64_t>(unix_seconds()),
                                       .is_chat = request.is_chat,
                                       .includes_usage = request.includes_usage}) {}

  GenerationSink events() {
    const auto self = shared_from_this();
    return {.on_text = [self](std::string_view text,
                              const GenerationUsage& usage) { self->on_text(text, usage); },
            .on_end = [self](FinishReason reason,
                             const GenerationUsage& usage) { self->on_end(reason, usage); },
            .on_failed = [self](const CallError& error) { self->on_failed(error); }};
  }

 private:
  void on_text(std::string_view text, const GenerationUsage& usage) {
    count(usage);
    if (!is_stream_) {
      text_ += text;
      return;
    }
    begin();
    text_ += text;
    if (has_room_) write_text();
  }

  void on_end(FinishReason reason, const GenerationUsage& usage) {
    count(usage);
    if (!is_stream_) {
      return exchange_->answer({.status = 200,
                                .content_type = "application/json",
                                .body = answer_.whole(text_, reason, usage)});
    }
    begin();
    write_text();
    exchange_->write(answer_.last_events(reason, usage));
    exchange_->end_stream();
  }

  // Known for the audit log however the reply ends, with its client too.
  void count(const GenerationUsage& usage) {
    exchange_->token_count = std::uint64_t{usage.prompt_tokens} + usage.reply_tokens;
  }

  void on_failed(const CallError& error) {
    const auto refusal = error_of(error);
    if (!has_begun_) return exchange_->refuse(refusal);
    write_text();
    exchange_->write(GenerationAnswer::error_events(refusal));
    exchange_->end_stream(&refusal);
  }

  // What the fault of a prompt is about is named as the body names it. A template that refuses it,
  // or that it takes beyond a limit, would do so again: nobody should come again with it.
  ApiError error_of(const CallError& error) const {
    const char* const field = is_chat_ ? "messages" : "prompt";
    if (error.field == CallField::PromptLength) {
      return wrong_field(field, "context_length_exceeded",
                         "Invalid '" + std::string(field) + "': " + error.error.message + ".");
    }
    if (error.field == CallField::Prompt) {
      return wrong_field(field, "invalid_value",
                         "Invalid '" + std::string(field) + "': " + error.error.message + ".");
    }
    return api_error(error);
  }

  void begin() {
    if (std::exchange(has_begun_, true)) return;
    HttpResponse head{
        .status = 200, .content_type = "text/event-stream; charset=utf-8", .body = {}};
    head.headers.emplace_back("Cache-Control", "no-cache");
    head.headers.emplace_back("X-Accel-Buffering", "no");  // nginx would hold parts back
    head.body = answer_.first_event();
    exchange_->begin_stream(std::move(head), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->has_room_ = true;
      self->write_text();
    });
  }

  void write_text() {
    if (text_.empty()) return;
    has_room_ = exchange_->write(answer_.text_event(std::exchange(text_, {})));
  }

  const ExchangePtr exchange_;
  const bool is_chat_;
  const bool is_stream_;
  const GenerationAnswer answer_;
  std::string text_;  // not sent yet
  bool has_begun_ = false;
  bool has_room_ = true;
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

void answer_reply(const ExchangePtr& exchange, ApiResult<GenerationRequest> parsed) {
  if (!parsed) return exchange->refuse(parsed.error());
  auto& service = exchange->state().generation;
  auto& call = parsed->call;
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
  call.caller = exchange->caller_name;
  const auto answer = std::make_shared<ReplyAnswer>(exchange, *parsed);
  const auto id = service.generate(std::move(call), answer->events());
  exchange->on_client_gone([&service, id] { service.cancel(id); });
}

}  // namespace

void answer_chat(const ExchangePtr& exchange) {
  answer_reply(exchange, parse_chat(std::move(exchange->request.body), {}));
}

void answer_completion(const ExchangePtr& exchange) {
  answer_reply(exchange, parse_completion(std::move(exchange->request.body), {}));
}

}  // namespace muster
