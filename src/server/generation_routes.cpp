// Replies over HTTP. A stream begins with its first token, so that what goes wrong before that has
// its own status. While a client reads slowly, what further tokens bring is kept here for each
// choice and goes out as one part when there is room: a slow reader gets fewer and longer parts.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/wall_clock.h"
#include "server/generation_answer.h"
#include "server/generation_api.h"
#include "server/handlers.h"
#include "server/logprobs_json.h"
#include "server/prompt_group.h"
#include "server/read_call.h"
#include "server/reply_calls.h"
#include "serving/generation_service.h"

namespace muster {
namespace {

ReplyFieldNames names_of(const GenerationRequest& request) {
  const bool is_ranked = request.call.candidate_count > request.call.choice_count;
  return {.prompt = request.is_chat ? "messages" : "prompt",
          .choices = is_ranked ? "best_of" : "n"};
}

/// One request from its body to the end of its answer. Owned by what the service calls.
class ReplyAnswer : public std::enable_shared_from_this<ReplyAnswer> {
 public:
  ReplyAnswer(ExchangePtr exchange, const GenerationRequest& request)
      : exchange_(std::move(exchange)),
        is_chat_(request.is_chat),
        is_stream_(request.is_stream),
        has_logprobs_(request.call.sampling.logprob_count.has_value()),
        names_(names_of(request)),
        choices_(request.call.computed_count() * (1 + request.more_prompts.size()),
                 Choice{.logprobs = LogprobsJson(is_chat_)}),
        answer_(GenerationAnswer::Head{.request_id = exchange_->request_id,
                                       .model = request.call.model,
                                       .created = static_cast<std::int64_t>(unix_seconds()),
                                       .is_chat = request.is_chat,
                                       .includes_usage = request.includes_usage}) {}

  /// Of a whole answer: what is held for it, and how its call is cancelled where more is not to be
  /// had.
  void set_held(const HeldReply& held) { held_ = held; }
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
    count_reply_tokens(*exchange_, usage);
    auto& choice = choices_[part.choice];
    if (is_stream_) begin();
    const auto kept = choice.logprobs.size();
    choice.text += part.text;
    if (part.token != nullptr) choice.logprobs.add(*part.token);
    if (!is_stream_) return keep(part.text.size() + choice.logprobs.size() - kept);
    const bool is_much = choice.text.size() + choice.logprobs.size() > kUnsentReplyMost;
    if (has_room_ || is_much) write_choice(part.choice);
  }

  // Of a whole answer, until its end.
  void keep(std::uint64_t bytes) {
    const auto kept = held_.keep(*exchange_, bytes);
    if (kept) return;
    exchange_->refuse(kept.error());
    cancel_();
  }

  void on_choice_end(std::uint32_t index, FinishReason reason) {
    choices_[index].reason = reason;
    if (!is_stream_) return;
    begin();
    write_choice(index);
    has_room_ = exchange_->write(answer_.finish_event(index, reason));
  }

  void on_end(const GenerationEnd& end) {
    count_reply_tokens(*exchange_, end.usage);
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

  void on_failed(const CallError& error) {
    const auto refusal = reply_error(error, names_);
    if (!has_begun_) return exchange_->refuse(refusal);
    write_choices();
    exchange_->write(GenerationAnswer::error_events(refusal));
    exchange_->end_stream(&refusal);
  }

  void begin() {
    if (std::exchange(has_begun_, true)) return;
    auto head = reply_stream_head("text/event-stream; charset=utf-8");
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
  const ReplyFieldNames names_;
  std::vector<Choice> choices_;
  const GenerationAnswer answer_;
  bool has_begun_ = false;
  bool has_room_ = true;
  HeldReply held_;
  std::function<void()> cancel_;
};

void answer_reply(const ExchangePtr& exchange, GenerationRequest request) {
  if (const auto completed = complete_reply(*exchange, request.call); !completed) {
    return exchange->refuse(completed.error());
  }
  exchange->text_count = 1 + request.more_prompts.size();
  const auto answer = std::make_shared<ReplyAnswer>(exchange, request);
  const auto names = names_of(request);
  const bool is_stream = request.is_stream;
  auto calls = calls_of(std::move(request));
  if (!is_stream) {
    auto held = HeldReply::hold(*exchange, calls, names);
    if (!held) return exchange->refuse(held.error());
    answer->set_held(*held);
  }
  answer->set_cancel(begin_replies(exchange, std::move(calls), answer->events()));
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
