// The part of the service that answers calls: from the cache, or by texts sent to the fleet.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/wall_clock.h"
#include "serving/row_mark.h"
#include "serving/serving_loop.h"

namespace muster {
namespace {

// Calls of so few texts are somebody waiting at a keyboard rather than a corpus.
constexpr std::size_t kInteractiveMost = 8;

// Nothing of it is looked up in the cache.
void miss_all(Call& call) {
  call.misses.resize(call.ids.empty() ? call.texts.size() : call.ids.size());
  for (std::uint32_t i = 0; i < call.misses.size(); ++i) call.misses[i] = {.position = i};
}

CallError refusal(ErrorKind kind, std::string message, std::optional<Duration> retry_after = {}) {
  return {.error = {kind, std::move(message)}, .retry_after = retry_after};
}

std::string_view bytes_of(const std::vector<std::uint32_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::uint32_t)};
}

std::optional<CallError> check_ids(const std::vector<std::vector<std::uint32_t>>& texts,
                                   const OpenedModel& model) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) {
      return refusal(ErrorKind::InvalidArgument, fmt::format("input {} has no token", i));
    }
    auto wrong =
        foreign_ids(model.text_encoder->tokenizer(), model.folder.encoder.vocab_size, texts[i]);
    if (wrong) {
      return CallError{.error = {ErrorKind::InvalidArgument, *std::move(wrong)},
                       .field = CallField::TokenIds};
    }
  }
  return std::nullopt;
}

std::optional<CallError> check_vocabulary(const std::vector<std::vector<std::uint32_t>>& texts,
                                          const Tokenizer& tokenizer) {
  for (const auto& ids : texts) {
    for (const auto id : ids) {
      if (id < tokenizer.vocab_size()) continue;
      return CallError{.error = {ErrorKind::InvalidArgument,
                                 fmt::format("token id {} is not in the vocabulary of {} tokens",
                                             id, tokenizer.vocab_size())},
                       .field = CallField::TokenIds};
    }
  }
  return std::nullopt;
}

// A model that scales in its own last step has no other vectors: refused, not answered wrongly.
std::optional<CallError> check_own_length(const EmbedCall& asked, const OpenedModel& model) {
  if (!asked.wants_own_length || !model.normalize) return std::nullopt;
  return CallError{.error = {ErrorKind::InvalidArgument,
                             "the model's own last step scales its vectors to length 1, so there "
                             "are no others; leave it out or set it to true"},
                   .field = CallField::Normalize};
}

std::optional<CallError> check_dimensions(std::optional<std::uint32_t> dimensions,
                                          std::uint32_t dim) {
  if (!dimensions || (*dimensions >= 1 && *dimensions <= dim)) return std::nullopt;
  return CallError{
      .error = {ErrorKind::InvalidArgument,
                fmt::format("the model has {0}, so expected an integer from 1 to {0}, but got {1}",
                            dim, *dimensions)},
      .field = CallField::Dimensions};
}

// For a call that is refused without work. 0 stands for it, since there is nothing to cancel.
template <typename OnDone>
CallId answer_at_once(const OnDone& on_done, CallError error) {
  on_done(std::move(error));
  return 0;
}

}  // namespace

void ServingLoop::expect_call() {
  if (has_spare_core_ && was_computed_) fleet_->texts().expect();
}

// All that can be refused without work is refused before the call has an id: nothing has to be
// undone then.
CallId ServingLoop::embed(EmbedCall asked,
                          std::function<void(std::variant<EmbedAnswer, CallError>)> on_done) {
  const auto model = models_.find(asked.options.model, ModelTask::Embed);
  if (!model) return answer_at_once(on_done, CallError{model.error(), {}});
  auto& served = **model;
  if (auto wrong = check_ids(asked.ids, served.opened)) {
    return answer_at_once(on_done, *std::move(wrong));
  }
  if (auto wrong = check_dimensions(asked.dimensions, served.row_size)) {
    return answer_at_once(on_done, *std::move(wrong));
  }
  if (auto wrong = check_own_length(asked, served.opened)) {
    return answer_at_once(on_done, *std::move(wrong));
  }
  auto prompt = preferred_prompt(served.opened.folder.sentence, asked.prompts_preferred)
                    .value_or(served.opened.prompt_name);
  if (asked.prompt_name) {
    const auto found = find_prompt(served.opened.folder.sentence, asked.prompt_name);
    if (!found) return answer_at_once(on_done, CallError{found.error(), {}});
    prompt = *found;
  }
  const auto text_count = asked.ids.empty() ? asked.texts.size() : asked.ids.size();
  auto begun = begin_call(asked.options, served, text_count);
  Call& call = *begun;
  call.type = call.lane == Lane::Interactive ? RequestType::Query : RequestType::Document;
  call.prompt = prompt_text(served.opened.folder.sentence, prompt);
  call.texts = std::move(asked.texts);
  call.ids = std::move(asked.ids);
  call.on_embedded = std::move(on_done);
  look_up(call, served);
  return let_in(std::move(begun), served);
}

CallId ServingLoop::rerank(RerankCall asked,
                           std::function<void(std::variant<RerankAnswer, CallError>)> on_done) {
  const auto model = models_.find(asked.options.model, ModelTask::Rerank);
  if (!model) return answer_at_once(on_done, CallError{model.error(), {}});
  auto& served = **model;
  if (served.row_size != 1) {
    return answer_at_once(
        on_done, refusal(ErrorKind::InvalidArgument,
                         fmt::format("the model {} gives {} labels, and an order needs one",
                                     served.name, served.row_size)));
  }
  auto begun = begin_call(asked.options, served, asked.texts.size());
  Call& call = *begun;
  call.type = RequestType::Rerank;
  call.texts = std::move(asked.texts);
  if (asked.queries.empty()) asked.queries.push_back(std::move(asked.query));
  for (const auto& query : asked.queries) {
    call.queries.push_back(std::make_shared<Tokenizer::FirstOfPairs>(
        served.opened.text_encoder->first_of_pairs(query)));
  }
  call.has_scores_raw = asked.raw_scores;
  call.on_reranked = std::move(on_done);
  miss_all(call);
  return let_in(std::move(begun), served);
}

// Any model has a tokenizer, so one that ranks serves too where none that embeds is meant.
CallId ServingLoop::tokenize(TokenizeCall asked,
                             std::function<void(std::variant<TokenizeAnswer, CallError>)> on_done) {
  const auto model = models_.find_any(asked.options.model);
  if (!model) return answer_at_once(on_done, CallError{model.error(), {}});
  auto& served = **model;
  auto prompt = served.opened.prompt_name;
  if (asked.prompt_name) {
    const auto found = find_prompt(served.opened.folder.sentence, asked.prompt_name);
    if (!found) return answer_at_once(on_done, CallError{found.error(), {}});
    prompt = *found;
  }
  if (auto wrong = check_vocabulary(asked.ids, served.opened.text_encoder->tokenizer())) {
    return answer_at_once(on_done, *std::move(wrong));
  }
  const auto text_count = asked.ids.empty() ? asked.texts.size() : asked.ids.size();
  auto begun = begin_call(asked.options, served, text_count);
  Call& call = *begun;
  call.prompt = prompt_text(served.opened.folder.sentence, prompt);
  call.texts = std::move(asked.texts);
  call.ids = std::move(asked.ids);
  call.has_special_tokens = asked.has_special_tokens;
  call.wants_pieces = asked.wants_pieces;
  call.skips_special_tokens = asked.skips_special_tokens;
  call.tokenized.resize(text_count);
  call.on_tokenized = std::move(on_done);
  miss_all(call);
  return let_in(std::move(begun), served);
}

// The lane is guessed by the number of texts where the caller names none. A deadline can only be
// made shorter than the server's longest.
std::unique_ptr<Call> ServingLoop::begin_call(const CallOptions& asked, const ServingModel& model,
                                              std::size_t text_count) {
  auto begun = calls_.make();
  Call& call = *begun;
  call.model = model.id;
  call.begun_at = clock_.now();
  call.lane = asked.lane.value_or(text_count <= kInteractiveMost ? Lane::Interactive : Lane::Bulk);
  call.may_truncate = asked.truncate.value_or(options_.auto_truncate);
  call.side = asked.truncation_side;
  call.flow = asked.caller.empty() ? 0 : std::hash<std::string>{}(asked.caller);
  call.admission.caller = asked.caller;
  call.admission.is_interactive = call.lane == Lane::Interactive;
  call.admission.text_count = text_count;
  call.row_size = model.row_size;
  call.limit = std::min(asked.deadline.value_or(options_.deadline), options_.deadline_most);
  return begun;
}

// What one key asked must not show in how quickly another is answered, unless they are to share.
CacheKey ServingLoop::scope_of(const Call& call, ServingModel& model) const {
  const auto& scope = model.scope(call.prompt, call.side == TruncationSide::Left);
  const auto& caller = call.admission.caller;
  if (options_.is_cache_shared || caller.empty()) return scope;
  const std::array<std::string_view, 2> fields{
      std::string_view(reinterpret_cast<const char*>(scope.data()), scope.size()), caller};
  return cache_scope(fields);
}

void ServingLoop::look_up(Call& call, ServingModel& model) {
  const auto scope = scope_of(call, model);
  const bool is_ids = !call.ids.empty();
  const auto now = unix_seconds();
  const auto count = static_cast<std::uint32_t>(is_ids ? call.ids.size() : call.texts.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto key =
        cache_key(scope, is_ids ? bytes_of(call.ids[i]) : std::string_view(call.texts[i]), is_ids);
    auto kept = cache_->find(key, now);
    for (std::size_t k = 1; kept.empty() && k < model.engine_classes.size(); ++k) {
      kept = cache_->find(ServingModel::key_of_class(key, model.engine_classes[k]), now);
    }
    const auto mark =
        kept.size() == call.row_size + 1 ? std::bit_cast<std::uint32_t>(kept.back()) : 0;
    // A text that must not be cut and was cut is not answered from here: tokenising refuses it.
    const bool is_hit = mark != 0 && (call.may_truncate || (mark & kTruncatedBit) == 0);
    if (!is_hit) {
      call.misses.push_back({.position = i, .key = key});
      continue;
    }
    call.take_memory_of_rows();
    std::copy_n(kept.begin(), call.row_size, call.row_of(i).begin());
    call.token_count += mark & ~kTruncatedBit;
    call.cached_token_count += mark & ~kTruncatedBit;
    ++call.cached_count;
  }
}

// What is answered at once, from the cache or by a refusal, never enters the table.
CallId ServingLoop::let_in(std::unique_ptr<Call> begun, ServingModel& model) {
  Call& call = *begun;
  call.missing_count = call.misses.size();
  if (counts_.is_draining) {
    return tell(call, refusal(ErrorKind::Unavailable, "the server is shutting down",
                              options_.drain_limit)),
           0;
  }
  if (!call.on_tokenized) call.admission.token_estimate = estimate_tokens(call, model);
  if (call.lane == Lane::Interactive && !call.misses.empty()) {
    call.lane = admission_.lane(call.admission, interactive_tokens_most(model));
  }
  // What needs no device waits in no queue; the caller's own limits hold all the same.
  const bool needs_device = !call.misses.empty() && !call.on_tokenized;
  const auto idle = needs_device ? idle_models_.find(model.id) : idle_models_.end();
  const bool is_idle = idle != idle_models_.end();
  if (is_idle && !idle->second.waits_for_memory) return tell(call, idle->second.error), 0;
  const auto queue = needs_device ? queue_state(call, model) : QueueState{};
  if (const auto refused = admission_.ask(call.admission, queue, clock_.now())) {
    ++(refused->is_own_limit ? counts_.limited_count : counts_.refused_count);
    return tell(call, refusal(ErrorKind::ResourceExhausted, refused->reason, refused->retry_after)),
           0;
  }
  ++counts_.request_count;
  ++model.request_count;
  was_computed_ = needs_device;
  if (call.misses.empty()) return answer(call, model), 0;
  if (needs_device) call.take_memory_of_rows();
  const auto id = call.id;
  calls_.add(std::move(begun));
  calls_.set_deadline(call, call.begun_at + call.limit);
  deadline_timer_->set(*calls_.next_deadline());
  if (is_idle) hold(call);
  queue_texts(call);
  return calls_.find(id) != nullptr ? id : 0;
}

/// What a key may have under way in the interactive lane: what all devices do in the time of a
/// batch, and one text of any length however slow they are.
double ServingLoop::interactive_tokens_most(const ServingModel& model) const {
  const double one_text = model.opened.text_encoder->length_max();
  const auto speed = fleet_->placement().dispatcher().tokens_per_second(model.id);
  return std::max(one_text, seconds(options_.dispatch.batch_time_most) *
                                speed.value_or(kUnknownTokensPerSecond));
}

QueueState ServingLoop::queue_state(const Call& call, const ServingModel& model) const {
  auto state = fleet_->placement().dispatcher().queue_state(model.id, call.lane, call.flow,
                                                            call.admission.token_estimate);
  const auto own_lane = static_cast<std::size_t>(call.lane);
  for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
    const auto& unsent = unsent_.at(lane);
    state.queued_texts += unsent.text_count();
    state.outstanding_tokens += unsent.token_count();
    if (lane < own_lane) state.tokens_ahead += unsent.token_count();
  }
  state.tokens_ahead += unsent_.at(own_lane).tokens_ahead(call.flow, call.admission.token_estimate);
  return state;
}

void ServingLoop::finish(CallId id) {
  const auto call = calls_.take(id);
  answer(*call, *models_.find(call->model));
}

// Of a call that is not in the table (any more).
void ServingLoop::answer(Call& call, const ServingModel& model) {
  const auto taken = seconds(clock_.now() - call.begun_at);
  const auto bound =
      std::lower_bound(ServiceStatus::kBounds.begin(), ServiceStatus::kBounds.end(), taken);
  ++counts_.latency_counts[static_cast<std::size_t>(bound - ServiceStatus::kBounds.begin())];
  counts_.latency_seconds += taken;
  admission_.on_end(call.admission, computed_tokens(call), clock_.now());
  if (call.on_tokenized) {
    call.on_tokenized(TokenizeAnswer{.model = model.name, .texts = std::move(call.tokenized)});
  } else if (call.on_reranked) {
    RerankAnswer answer{
        .model = model.name, .scores = std::move(call.rows), .token_count = call.token_count};
    const auto activation = model.opened.folder.rerank->activation;
    for (auto& score : answer.scores) {
      if (!call.has_scores_raw) score = activate_score(activation, score);
    }
    call.on_reranked(std::move(answer));
  } else {
    call.on_embedded(EmbedAnswer{.model = model.name,
                                 .dim = call.row_size,
                                 .rows = std::move(call.rows),
                                 .is_normalized = model.opened.normalize,
                                 .token_count = call.token_count,
                                 .cached_count = call.cached_count});
  }
  on_call_end(call.model);
}

void ServingLoop::fail(CallId id, const CallError& failure) {
  const auto call = calls_.take(id);
  if (!call) return;
  const bool is_expired = failure.error.kind == ErrorKind::DeadlineExceeded;
  ++(is_expired ? counts_.expired_count : counts_.failed_count);
  leave_flights(*call);
  tell(*call, failure);
  on_call_end(call->model);
}

CallError ServingLoop::no_device(const ServingModel& model,
                                 const std::vector<GroupStatus>& devices) {
  // A failing device is started again every half minute at the latest
  // (coordinator/restart_policy.h).
  constexpr Duration kRetryAfter = std::chrono::seconds(5);
  for (const auto& device : devices) {
    if (!device.models.contains(model.id) || device.is_to_rest) continue;
    return refusal(ErrorKind::Unavailable,
                   fmt::format("no device of {} works: {} is {}: {}", model.name, device.name,
                               group_state_name(device.state), device.reason),
                   kRetryAfter);
  }
  return refusal(ErrorKind::Unavailable,
                 model.asked.devices.empty()
                     ? "every device is drained"
                     : fmt::format("every device of {} is drained", model.name));
}

void ServingLoop::tell(Call& call, const CallError& failure) {
  if (call.on_tokenized) {
    call.on_tokenized(failure);
  } else if (call.on_reranked) {
    call.on_reranked(failure);
  } else {
    call.on_embedded(failure);
  }
}

void ServingLoop::cancel(CallId id) {
  const auto call = calls_.take(id);
  if (!call) return;
  ++counts_.cancelled_count;
  leave_flights(*call);
  on_call_end(call->model);
}

void ServingLoop::leave_flights(const Call& call) {
  forget_unsent(call);
  admission_.on_end(call.admission, computed_tokens(call), clock_.now());
  // From the last one, so that its key is charged for none of them (scheduler/fair_order.h).
  for (auto item = call.items.rbegin(); item != call.items.rend(); ++item) {
    if (flights_.leave(*item, call.id)) fleet_->texts().cancel(*item);
  }
  place_soon();
}

/// What devices have done for a call, or have begun: cached texts cost nothing, and a client that
/// goes is not given back what is computed all the same.
std::uint64_t ServingLoop::computed_tokens(const Call& call) const {
  auto sum = call.token_count - call.cached_token_count;
  if (call.missing_count == 0) return sum;
  for (const auto item : call.items) {
    const auto* flight = flights_.find(item);
    if (flight != nullptr && fleet_->placement().dispatcher().is_with_device(item)) {
      sum += flight->token_count;
    }
  }
  return sum;
}

void ServingLoop::expire() {
  const auto now = clock_.now();
  while (const auto id = calls_.find_expired(now)) {
    const auto limit = seconds(calls_.find(*id)->limit);
    fail(*id, refusal(ErrorKind::DeadlineExceeded,
                      fmt::format("no answer within the time allowed: {:.3g} s", limit)));
  }
  if (const auto next = calls_.next_deadline()) deadline_timer_->set(*next);
}

}  // namespace muster
