// Replies in Ollama's form. A stream begins with its first token, so that what goes wrong before
// that has its own status. While a client reads slowly, what further tokens bring is kept here and
// goes out as one line when there is room.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/wall_clock.h"
#include "server/handlers.h"
#include "server/ollama_answer.h"
#include "server/ollama_reply_api.h"
#include "server/read_call.h"
#include "server/reply_calls.h"

namespace muster {
namespace {

ReplyFieldNames names_of(const OllamaReplyRequest& request) {
  return {.prompt = request.is_chat ? "messages" : "prompt", .token_limit = "num_predict"};
}

/// One request from its body to the end of its answer. Owned by what the service calls.
class OllamaReply : public std::enable_shared_from_this<OllamaReply> {
 public:
  /// begun: when the request was whole.
  OllamaReply(ExchangePtr exchange, TimePoint begun, const OllamaReplyRequest& request)
      : exchange_(std::move(exchange)),
        begun_(begun),
        is_stream_(request.is_stream),
        names_(names_of(request)),
        answer_(request.model_name, request.is_chat) {}

  /// Of a whole answer: what is held for it, and how its call is cancelled where more is not to be
  /// had.
  void set_held(const HeldReply& held) { held_ = held; }
  void set_cancel(std::function<void()> cancel) { cancel_ = std::move(cancel); }

  GenerationSink events() {
    const auto self = shared_from_this();
    return {.on_part = [self](const ReplyPart& part,
                              const GenerationUsage& usage) { self->on_part(part, usage); },
            .on_choice_end = [self](std::uint32_t /*choice*/,
                                    FinishReason reason) { self->reason_ = reason; },
            .on_end = [self](const GenerationEnd& end) { self->on_end(end.usage); },
            .on_failed = [self](const CallError& error) { self->on_failed(error); }};
  }

 private:
  void on_part(const ReplyPart& part, const GenerationUsage& usage) {
    count_reply_tokens(*exchange_, usage);
    if (!token_at_) token_at_ = exchange_->state().clock.now();
    text_ += part.text;
    if (!is_stream_) return keep(part.text.size());
    begin();
    if (has_room_ || text_.size() > kUnsentReplyMost) write_text();
  }

  // Of a whole answer, until its end.
  void keep(std::uint64_t bytes) {
    const auto kept = held_.keep(*exchange_, bytes);
    if (kept) return;
    exchange_->refuse(kept.error());
    cancel_();
  }

  void on_end(const GenerationUsage& usage) {
    count_reply_tokens(*exchange_, usage);
    const auto now = exchange_->state().clock.now();
    OllamaEnd end{.reason = reason_, .usage = usage, .total = now - begun_};
    if (token_at_) end.reply_time = now - *token_at_;
    if (!is_stream_) {
      return exchange_->answer({.status = 200,
                                .content_type = "application/json",
                                .body = answer_.last(text_, end, unix_seconds())});
    }
    begin();
    write_text();
    exchange_->write(answer_.last("", end, unix_seconds()) + '\n');
    exchange_->end_stream();
  }

  void on_failed(const CallError& error) {
    const auto refusal = reply_error(error, names_);
    if (!has_begun_) return exchange_->refuse(refusal);
    write_text();
    exchange_->write(OllamaAnswer::error_line(refusal));
    exchange_->end_stream(&refusal);
  }

  void begin() {
    if (std::exchange(has_begun_, true)) return;
    exchange_->begin_stream(reply_stream_head("application/x-ndjson"), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->has_room_ = true;
      self->write_text();
    });
  }

  // Nothing where nothing is new. A token may come without a text of its own: the beginning of a
  // character, or of a stop string.
  void write_text() {
    if (text_.empty()) return;
    has_room_ = exchange_->write(answer_.line(std::exchange(text_, {}), unix_seconds()));
  }

  const ExchangePtr exchange_;
  const TimePoint begun_;
  const bool is_stream_;
  const ReplyFieldNames names_;
  const OllamaAnswer answer_;
  std::string text_;  // of a stream what is not sent
  FinishReason reason_ = FinishReason::Stop;
  std::optional<TimePoint> token_at_;  // the first
  bool has_begun_ = false;
  bool has_room_ = true;
  HeldReply held_;
  std::function<void()> cancel_;
};

// There is nothing to reply to: it asks for the model to be there.
void answer_loaded(const ExchangePtr& exchange, const OllamaReplyRequest& request) {
  const auto found = exchange->state().generation.decoders().find(request.call.model);
  if (const auto* error = std::get_if<CallError>(&found)) {
    return exchange->refuse(api_error(*error));
  }
  const auto* const decoder = *std::get_if<ServingDecoder*>(&found);
  if (!decoder->can_work() || !decoder->was_ever_ready()) {
    return exchange->refuse(api_error(
        CallError{.error = {ErrorKind::Unavailable, "no device has loaded " + decoder->name}}));
  }
  const OllamaAnswer answer(request.model_name, request.is_chat);
  exchange->answer(
      {.status = 200, .content_type = "application/json", .body = answer.loaded(unix_seconds())});
}

// As Ollama has it: the template of a model that comes with none is its prompt. One that comes with
// a template that cannot be read is another matter: it is refused by what that says.
void continue_without_template(Exchange& exchange, OllamaReplyRequest& request) {
  auto& call = request.call;
  if (request.is_chat || call.turns.size() != 1) return;
  const auto found = exchange.state().generation.decoders().find(call.model);
  const auto* const decoder = std::get_if<ServingDecoder*>(&found);
  if (decoder == nullptr || !(*decoder)->prompts->text.templates.empty()) return;
  call.text = std::move(call.turns.front().content);
  call.turns.clear();
}

void reply_to(const ExchangePtr& exchange, TimePoint begun, OllamaReplyRequest request) {
  auto& call = request.call;
  if (const auto completed = complete_reply(*exchange, call); !completed) {
    return exchange->refuse(completed.error());
  }
  if (request.model_name.empty()) request.model_name = call.model;
  if (call.turns.empty() && call.text.empty()) return answer_loaded(exchange, request);
  continue_without_template(*exchange, request);
  const auto reply = std::make_shared<OllamaReply>(exchange, begun, request);
  if (!request.is_stream) {
    auto held = HeldReply::hold(*exchange, {&call, 1}, names_of(request));
    if (!held) return exchange->refuse(held.error());
    reply->set_held(*held);
  }
  reply->set_cancel(begin_reply(exchange, std::move(call), reply->events()));
}

template <typename Parse>
void answer_body(const ExchangePtr& exchange, Parse parse) {
  const auto begun = exchange->state().clock.now();
  read_call(
      exchange, [parse](std::string body) { return parse(std::move(body), {}); },
      [begun](const ExchangePtr& asker, OllamaReplyRequest request) {
        reply_to(asker, begun, std::move(request));
      });
}

}  // namespace

void ollama_generate(const ExchangePtr& exchange) { answer_body(exchange, parse_ollama_generate); }

void ollama_chat(const ExchangePtr& exchange) { answer_body(exchange, parse_ollama_chat); }

}  // namespace muster
