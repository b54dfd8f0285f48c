// Several prompts of one request. The service knows calls of one prompt: here their parts and ends
// become those of one call, numbered through.

#include "server/prompt_group.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "server/generation_fields.h"
#include "server/reply_calls.h"
#include "serving/generation_service.h"

namespace muster {
namespace {

/// Owned by what the service calls.
class PromptGroup : public std::enable_shared_from_this<PromptGroup> {
 public:
  PromptGroup(GenerationService& service, std::size_t count, std::uint32_t choices_each,
              GenerationSink sink)
      : service_(service),
        sink_(std::move(sink)),
        choices_each_(choices_each),
        ends_(count),
        open_count_(count) {}

  void begin(std::vector<GenerationCall> calls) {
    std::vector<GenerationSink> sinks;
    for (std::size_t i = 0; i < calls.size(); ++i) sinks.push_back(events(i));
    service_.generate_all(std::move(calls), std::move(sinks), ids_);
    has_begun_ = true;
  }

  // From the last one, so that their key's turn is charged for none that waited.
  void cancel() {
    for (auto id = ids_.rbegin(); id != ids_.rend(); ++id) service_.cancel(*id);
  }

 private:
  GenerationSink events(std::size_t prompt) {
    const auto self = shared_from_this();
    const auto first = static_cast<std::uint32_t>(prompt) * choices_each_;
    return {
        .on_part =
            [self, prompt, first](const ReplyPart& part, const GenerationUsage& usage) {
              self->ends_[prompt].usage = usage;
              self->sink_.on_part({first + part.choice, part.text, part.token}, self->usage());
            },
        .on_choice_end =
            [self, first](std::uint32_t choice, FinishReason reason) {
              self->sink_.on_choice_end(first + choice, reason);
            },
        .on_end = [self, prompt](const GenerationEnd& end) { self->on_end(prompt, end); },
        .on_failed = [self, prompt](const CallError& error) { self->on_failed(prompt, error); }};
  }

  GenerationUsage usage() const {
    GenerationUsage sum;
    for (const auto& end : ends_) {
      sum.prompt_tokens += end.usage.prompt_tokens;
      sum.cached_tokens += end.usage.cached_tokens;
      sum.reply_tokens += end.usage.reply_tokens;
    }
    return sum;
  }

  void on_end(std::size_t prompt, const GenerationEnd& end) {
    ends_[prompt] = end;
    if (--open_count_ > 0) return;
    GenerationEnd all{.usage = usage()};
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      const auto first = static_cast<std::uint32_t>(i) * choices_each_;
      for (const auto choice : ends_[i].choices) all.choices.push_back(first + choice);
    }
    sink_.on_end(all);
  }

  void on_failed(std::size_t prompt, CallError error) {
    cancel();
    const bool is_of_prompt =
        error.field == CallField::Prompt || error.field == CallField::PromptLength;
    if (is_of_prompt && has_begun_) {
      error.error.message =
          fmt::format("prompt {} of {}: {}", prompt + 1, ends_.size(), error.error.message);
    }
    sink_.on_failed(error);
  }

  GenerationService& service_;
  const GenerationSink sink_;
  const std::uint32_t choices_each_;
  std::vector<CallId> ids_;
  std::vector<GenerationEnd> ends_;  // of each prompt; until its end the usage alone
  std::size_t open_count_;
  bool has_begun_ = false;  // before that all are refused together
};

}  // namespace

std::vector<GenerationCall> calls_of(GenerationRequest request) {
  std::vector<GenerationCall> calls;
  calls.reserve(1 + request.more_prompts.size());
  // Without the first prompt, which may be long.
  CompletionPrompt first{std::exchange(request.call.text, {}), std::exchange(request.call.ids, {})};
  for (auto& prompt : request.more_prompts) {
    auto& call = calls.emplace_back(request.call);
    call.text = std::move(prompt.text);
    call.ids = std::move(prompt.ids);
    if (request.draws_seed) set_seed(std::nullopt, call.sampling);
  }
  request.call.text = std::move(first.text);
  request.call.ids = std::move(first.ids);
  calls.insert(calls.begin(), std::move(request.call));
  return calls;
}

std::function<void()> begin_replies(const ExchangePtr& exchange, std::vector<GenerationCall> calls,
                                    GenerationSink events) {
  if (calls.size() == 1) {
    return begin_reply(exchange, std::move(calls.front()), std::move(events));
  }
  auto& service = exchange->state().generation;
  const auto each = calls.front().computed_count();
  const auto group = std::make_shared<PromptGroup>(service, calls.size(), each, std::move(events));
  // The service holds it while a call is open.
  const auto cancel = [weak = std::weak_ptr(group)] {
    if (const auto open = weak.lock()) open->cancel();
  };
  exchange->on_client_gone(cancel);
  group->begin(std::move(calls));
  return cancel;
}

}  // namespace muster
