// Each reply is asked for with all messages: the model's template decides how they are put
// together, and may change what stands before them. What does not fit the context is left out from
// the oldest message on, in pairs of question and answer, since templates want them in turns.

#include "jobs/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/wall_clock.h"
#include "jobs/context_fit.h"
#include "jobs/decoder_cache.h"
#include "jobs/reply_text.h"
#include "modelfile/decoder_config.h"

namespace muster {
namespace {

constexpr Duration kStepTime = std::chrono::milliseconds(100);
constexpr std::uint64_t kBlockTokens = 16;

}  // namespace

struct Conversation::Inside {
  explicit Inside(ChatTemplate template_read) : prompt_template(std::move(template_read)) {}

  /// Until the reply has ended or was cancelled; `end` says how.
  Status reply_to(SequenceRequest request, ReplyText& into,
                  const std::function<bool()>& cancelled) {
    reply = &into;
    end.reset();
    error.reset();
    first_at.reset();
    id = session->submit(std::move(request));
    Status went = Done{};
    while (went && !end && !error) {
      if (cancelled()) {
        end = GenerateEnd::Interrupted;
      } else {
        went = session->step(kStepTime);
      }
    }
    session->cancel(id);  // of no effect where it has ended
    reply = nullptr;
    if (went && error) went = *error;
    if (!went) return went;
    MUSTER_TRY(into.finish());
    if (end) end = end_with(into, *end);
    return Done{};
  }

  DecoderText text;
  ChatTemplate prompt_template;
  TemplateVariables template_variables;
  std::unique_ptr<DecoderSession> session;
  std::uint64_t id = 0;        // of the reply that is under way
  ReplyText* reply = nullptr;  // it
  std::optional<GenerateEnd> end;
  std::optional<Error> error;
  std::optional<TimePoint> first_at;
  TimePoint last_at{};
};

Conversation::Conversation(Events events, const Clock& clock)
    : events_(std::move(events)), clock_(clock) {}
Conversation::~Conversation() = default;

Result<std::unique_ptr<Conversation>> Conversation::start(ConversationOptions options,
                                                          Events events, const Clock& clock) {
  const auto spec = MUSTER_TRY(read_decoder_spec(options.source));
  std::unique_ptr<Conversation> made(new Conversation(std::move(events), clock));
  made->context_tokens_ = std::min(options.context_tokens, spec.length_max);
  auto text = MUSTER_TRY(load_decoder_text(options.source));
  auto prompt_template = MUSTER_TRY(text.find_template(std::nullopt, /*has_tools=*/false));
  made->inside_ = std::make_unique<Inside>(std::move(prompt_template));
  auto& inside = *made->inside_;
  inside.text = std::move(text);
  inside.template_variables = options.template_variables;
  DecoderSessionEvents on;
  // What the worker can do may be less than the file says: of positions that are scaled.
  on.on_ready = [conversation = made.get()](const DecoderReady& ready) {
    conversation->context_tokens_ = std::min(conversation->context_tokens_, ready.length_max);
  };
  on.on_token = [&inside, &clock](const GeneratedToken& token) {
    if (inside.reply == nullptr || token.sequence != inside.id || inside.error) return;
    if (inside.reply->is_stopped()) return;
    inside.last_at = clock.now();
    if (!inside.first_at) inside.first_at = inside.last_at;
    if (const auto pushed = inside.reply->push(token.token); !pushed) inside.error = pushed.error();
    if (inside.reply->is_stopped()) inside.end = GenerateEnd::StopString;
  };
  on.on_finished = [&inside](std::uint64_t id, FinishReason reason) {
    if (id != inside.id || inside.end) return;
    inside.end = reason == FinishReason::Stop ? GenerateEnd::StopToken : GenerateEnd::Length;
  };
  on.on_failed = [&inside](std::uint64_t id, const Error& error) {
    if (id == inside.id) inside.error = error;
  };
  on.on_notice = made->events_.on_notice;
  const auto cached = std::uint64_t{made->context_tokens_} + kBlockTokens;
  const auto kept = kept_as(options.kv_cache_dtype, options.precision);
  inside.session = MUSTER_TRY(DecoderSession::start(
      session_options(options, cached * token_cache_bytes(spec, kept)), std::move(on), clock));
  return made;
}

Result<std::vector<TokenId>> Conversation::ids_of(const std::vector<ChatMessage>& messages) const {
  const auto& text = inside_->text;
  const auto input =
      chat_input_of(chat_value_of(messages), text, static_cast<std::int64_t>(unix_seconds()),
                    inside_->template_variables);
  const auto rendered = MUSTER_TRY(inside_->prompt_template.render(input));
  const auto scratch = text.tokenizer->make_scratch();
  auto ids = encode_rendered(*text.tokenizer, rendered, *scratch);
  if (!ids.empty()) return ids;
  return Error{ErrorKind::InvalidArgument, "the chat template makes nothing of this conversation"};
}

Result<std::vector<TokenId>> Conversation::fitting_ids(const ReplySettings& settings,
                                                       std::size_t& left_out) const {
  const auto room = reply_room(settings.token_limit, context_tokens_);
  Result<std::vector<TokenId>> ids = std::vector<TokenId>();
  std::size_t tried = 0;
  const auto try_without = [&](std::size_t pairs) {
    std::vector<ChatMessage> seen;
    if (settings.system) seen.push_back({"system", *settings.system});
    seen.insert(seen.end(), messages_.begin() + static_cast<std::ptrdiff_t>(2 * pairs),
                messages_.end());
    ids = ids_of(seen);
    tried = pairs;
  };
  std::optional<Error> wrong;  // with the template, however much is left out
  const auto fits = [&](std::size_t pairs) {
    try_without(pairs);
    if (!ids && ids.error().kind != ErrorKind::ResourceExhausted) wrong = ids.error();
    return wrong || (ids && ids->size() + room.wanted <= context_tokens_);
  };
  const auto pair_count = messages_.size() / 2;
  const auto fewest = pairs_left_out(pair_count, fits).value_or(pair_count);
  if (wrong) return *wrong;
  if (tried != fewest) try_without(fewest);
  left_out = 2 * fewest;
  if (!ids || ids->size() + room.least <= context_tokens_) return ids;
  return Error{ErrorKind::InvalidArgument,
               fmt::format("this takes {} tokens, and with {} for the reply it is longer than the "
                           "context of {}",
                           ids->size(), room.least, context_tokens_)};
}

Result<ConversationReply> Conversation::say(const std::string& text, const ReplySettings& settings,
                                            const std::function<bool()>& cancelled) {
  MUSTER_TRY(check_prompt_text("the message", text));
  MUSTER_TRY(check_prompt_text("the system's text", settings.system.value_or("")));
  auto stops = MUSTER_TRY(StopStrings::make(settings.stops));
  const auto asked_at = clock_.now();
  messages_.push_back({"user", text});
  ConversationReply done;
  auto ids = fitting_ids(settings, done.left_out_count);
  if (!ids) {
    messages_.pop_back();
    return ids.error();
  }
  std::string said;
  auto& inside = *inside_;
  ReplyText reply(*inside.text.tokenizer, /*continues_text=*/false, std::move(stops),
                  [&](std::string_view part) {
                    said += part;
                    return events_.on_text(part);
                  });
  done.prompt_tokens = static_cast<std::uint32_t>(ids->size());
  const auto went = inside.reply_to(
      {.ids = *std::move(ids),
       .token_limit = std::min(settings.token_limit, context_tokens_ - done.prompt_tokens),
       .stop_ids = inside.text.stop_ids,
       .sampling = settings.sampling},
      reply, cancelled);
  if (!went) {
    messages_.pop_back();
    return went.error();
  }
  if (said.empty() && inside.end == GenerateEnd::Interrupted) {
    messages_.pop_back();  // as if it had not been asked
  } else {
    messages_.push_back({"assistant", std::move(said)});
  }
  done.end = *inside.end;
  done.reply_tokens = reply.token_count();
  done.is_context_full =
      done.end == GenerateEnd::Length && done.reply_tokens < settings.token_limit;
  if (inside.first_at) {
    done.first_token_seconds = seconds(*inside.first_at - asked_at);
    done.decode_seconds = seconds(inside.last_at - *inside.first_at);
  }
  return done;
}

}  // namespace muster
