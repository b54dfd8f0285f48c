// The part of the service that answers calls: from the cache, or by texts sent to the fleet.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/wall_clock.h"
#include "service/serving_loop.h"

namespace muster {
namespace {

// A loop that tokenises for longer than this keeps others waiting; the rest follows in a later
// turn.
constexpr Duration kTurn = std::chrono::milliseconds(2);

// Calls of so few texts are somebody waiting at a keyboard rather than a corpus.
constexpr std::size_t kInteractiveMost = 8;

constexpr std::uint32_t kTruncatedBit = 1U << 31;

// A row as it is cached: its values, and then how many tokens the text had and whether it was cut,
// as the bits of one more float.
float length_mark(std::uint32_t token_count, bool is_truncated) {
  return std::bit_cast<float>(token_count | (is_truncated ? kTruncatedBit : 0));
}

CallError refusal(ErrorKind kind, std::string message, std::optional<Duration> retry_after = {}) {
  return {.error = {kind, std::move(message)}, .retry_after = retry_after};
}

Error too_long(const ServingModel& model) {
  return {ErrorKind::InvalidArgument,
          fmt::format("the text is longer than the model can take: more than {} tokens, and "
                      "truncation was refused",
                      model.opened.text_encoder->length_max())};
}

std::string_view bytes_of(const std::vector<std::uint32_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::uint32_t)};
}

std::optional<CallError> check_ids(const std::vector<std::vector<std::uint32_t>>& texts,
                                   std::uint32_t vocab_size) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) {
      return refusal(ErrorKind::InvalidArgument, fmt::format("input {} has no token", i));
    }
    const auto worst = *std::max_element(texts[i].begin(), texts[i].end());
    if (worst >= vocab_size) {
      return CallError{.error = {ErrorKind::InvalidArgument,
                                 fmt::format("token id {} is not in the vocabulary of {} tokens",
                                             worst, vocab_size)},
                       .field = CallField::TokenIds};
    }
  }
  return std::nullopt;
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

}  // namespace

void ServingLoop::expect_call() {
  if (has_spare_core_ && was_computed_) fleet_->expect();
}

CallId ServingLoop::embed(EmbedCall asked,
                          std::function<void(std::variant<EmbedAnswer, CallError>)> on_done) {
  const auto model = models_.find(asked.options.model, ModelTask::Embed);
  if (!model) return on_done(CallError{model.error(), {}}), 0;
  auto& served = **model;
  if (auto wrong = check_ids(asked.ids, served.opened.folder.encoder.vocab_size)) {
    return on_done(*std::move(wrong)), 0;
  }
  if (auto wrong = check_dimensions(asked.dimensions, served.row_size)) {
    return on_done(*std::move(wrong)), 0;
  }
  auto prompt = served.opened.prompt_name;
  if (asked.prompt_name) {
    const auto found = find_prompt(served.opened.folder.sentence, asked.prompt_name);
    if (!found) return on_done(CallError{found.error(), {}}), 0;
    prompt = *found;
  }
  const auto text_count = asked.ids.empty() ? asked.texts.size() : asked.ids.size();
  auto& call = begin_call(asked.options, served, text_count);
  call.type = call.lane == Lane::Interactive ? RequestType::Query : RequestType::Document;
  call.prompt = prompt_text(served.opened.folder.sentence, prompt);
  call.texts = std::move(asked.texts);
  call.ids = std::move(asked.ids);
  call.on_embedded = std::move(on_done);
  look_up(call, served);
  return let_in(call, served);
}

CallId ServingLoop::rerank(RerankCall asked,
                           std::function<void(std::variant<RerankAnswer, CallError>)> on_done) {
  const auto model = models_.find(asked.options.model, ModelTask::Rerank);
  if (!model) return on_done(CallError{model.error(), {}}), 0;
  auto& served = **model;
  if (served.row_size != 1) {
    return on_done(refusal(ErrorKind::InvalidArgument,
                           fmt::format("the model {} gives {} labels, and an order needs one",
                                       served.name, served.row_size))),
           0;
  }
  auto& call = begin_call(asked.options, served, asked.texts.size());
  call.type = RequestType::Rerank;
  call.texts = std::move(asked.texts);
  call.query = std::move(asked.query);
  call.has_scores_raw = asked.raw_scores;
  call.on_reranked = std::move(on_done);
  call.misses.resize(call.texts.size());
  for (std::uint32_t i = 0; i < call.misses.size(); ++i) call.misses[i] = {.position = i};
  return let_in(call, served);
}

Call& ServingLoop::begin_call(const CallOptions& asked, ServingModel& model,
                              std::size_t text_count) {
  auto& call = calls_.add();
  call.model = model.id;
  call.begun_at = clock_.now();
  call.lane = asked.lane.value_or(text_count <= kInteractiveMost ? Lane::Interactive : Lane::Bulk);
  call.may_truncate = asked.truncate.value_or(options_.auto_truncate);
  call.side = asked.truncation_side;
  call.admission.caller = asked.caller;
  call.admission.text_count = text_count;
  call.row_size = model.row_size;
  call.limit = std::min(asked.deadline.value_or(options_.deadline), options_.deadline_most);
  return call;
}

void ServingLoop::look_up(Call& call, ServingModel& model) {
  const auto& scope = model.scope(call.prompt, call.side == TruncationSide::Left);
  const bool is_ids = !call.ids.empty();
  const auto now = unix_seconds();
  const auto count = static_cast<std::uint32_t>(is_ids ? call.ids.size() : call.texts.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto key =
        cache_key(scope, is_ids ? bytes_of(call.ids[i]) : std::string_view(call.texts[i]), is_ids);
    const auto kept = cache_->find(key, now);
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
    ++call.cached_count;
  }
}

CallId ServingLoop::let_in(Call& call, ServingModel& model) {
  const auto id = call.id;
  call.missing_count = call.misses.size();
  if (counts_.is_draining) {
    return refuse(id, refusal(ErrorKind::Unavailable, "the server is shutting down",
                              options_.drain_limit)),
           0;
  }
  call.admission.token_bound = token_bound(call, model);
  // What needs no device waits in no queue; the caller's own limits hold all the same.
  const auto queue = call.misses.empty() ? QueueState{} : queue_state(model, call.lane);
  if (const auto refused = admission_.ask(call.admission, queue, clock_.now())) {
    ++(refused->is_own_limit ? counts_.limited_count : counts_.refused_count);
    return refuse(id, refusal(ErrorKind::ResourceExhausted, refused->reason, refused->retry_after)),
           0;
  }
  ++counts_.request_count;
  ++model.request_count;
  was_computed_ = !call.misses.empty();
  if (call.misses.empty()) return finish(id), 0;
  call.take_memory_of_rows();
  calls_.set_deadline(call, call.begun_at + call.limit);
  deadline_timer_->set(*calls_.next_deadline());
  send_texts(id);
  return calls_.find(id) != nullptr ? id : 0;
}

std::uint64_t ServingLoop::token_bound(const Call& call, const ServingModel& model) const {
  // No tokenizer makes more tokens than bytes, besides its special ones.
  const auto length_max = std::uint64_t{model.opened.text_encoder->length_max()};
  const auto extra =
      model.opened.text_encoder->tokenizer().special_token_count() + call.prompt.size();
  std::uint64_t bound = 0;
  for (const auto& miss : call.misses) {
    const auto size = call.ids.empty()
                          ? call.texts[miss.position].size() + call.query.size() + extra
                          : call.ids[miss.position].size();
    bound += std::min<std::uint64_t>(length_max, size);
  }
  return bound;
}

QueueState ServingLoop::queue_state(const ServingModel& model, Lane lane) const {
  auto state = fleet_->dispatcher().queue_state(model.id, lane);
  for (const auto id : unsent_) {
    const auto& call = *calls_.find(id);
    const auto left = call.misses.size() - call.next_miss;
    state.queued_texts += left;
    const auto tokens = call.admission.token_bound * left / call.misses.size();
    state.outstanding_tokens += tokens;
    if (call.lane <= lane) state.tokens_ahead += tokens;
  }
  return state;
}

void ServingLoop::send_texts(CallId id) {
  auto* call = calls_.find(id);
  if (call == nullptr) return;
  auto& model = *models_.find(call->model);
  const auto begin = clock_.now();
  while (call->next_miss < call->misses.size()) {
    if (const auto sent = send_text(*call, model, call->misses[call->next_miss]); !sent) {
      fail(id, {.error = sent.error(), .retry_after = {}});
      break;
    }
    ++call->next_miss;
    if (clock_.now() - begin > kTurn && call->next_miss < call->misses.size()) {
      unsent_.insert(id);
      loop_.post([this, id] { send_texts(id); });
      return place_soon();
    }
  }
  unsent_.erase(id);
  place_soon();
}

Status ServingLoop::send_text(Call& call, ServingModel& model, const CallMiss& miss) {
  const bool is_shareable = call.query.empty();
  if (auto* flight = is_shareable ? flights_.find(miss.key) : nullptr) {
    if (flight->is_truncated && !call.may_truncate) return too_long(model);
    flight->waiters.push_back({.call = call.id, .position = miss.position});
    call.items.push_back(flight->item);
    ++counts_.shared_count;
    return Done{};
  }
  std::vector<std::uint32_t> ids;
  std::uint32_t first_segment = 0;
  const auto encoded = encode(call, model, miss.position, ids, first_segment);
  if (encoded.is_truncated && !call.may_truncate) return too_long(model);
  auto& flight = flights_.add(call.model, is_shareable ? std::optional(miss.key) : std::nullopt);
  flight.token_count = static_cast<std::uint32_t>(ids.size());
  flight.is_truncated = encoded.is_truncated;
  flight.waiters.push_back({.call = call.id, .position = miss.position});
  call.items.push_back(flight.item);
  std::uint64_t affinity = 0;
  std::memcpy(&affinity, miss.key.data(), sizeof affinity);
  fleet_->submit({.item = {.key = flight.item,
                           .model = call.model,
                           .token_count = flight.token_count,
                           .lane = call.lane,
                           .type = call.type,
                           .affinity = affinity},
                  .ids = std::move(ids),
                  .first_segment = first_segment});
  return Done{};
}

Tokenizer::Encoded ServingLoop::encode(Call& call, ServingModel& model, std::uint32_t position,
                                       std::vector<std::uint32_t>& ids,
                                       std::uint32_t& first_segment) {
  auto& encoder = *model.opened.text_encoder;
  first_segment = 0;
  if (model.task == ModelTask::Rerank) {
    const auto pair = encoder.encode_pair(call.query, call.texts[position], ids);
    if (model.opened.folder.rerank->has_segments) first_segment = pair.first_segment;
    return {.token_count = pair.token_count, .is_truncated = pair.is_truncated};
  }
  if (call.ids.empty()) {
    const auto text = std::exchange(call.texts[position], {});
    constexpr std::size_t kBytesOfToken = 4;  // about so many
    ids.reserve(std::min<std::size_t>(text.size() / kBytesOfToken + 8, encoder.length_max()));
    return encoder.encode(call.prompt, text, call.side, ids);
  }
  ids = std::move(call.ids[position]);
  const auto length_max = encoder.length_max();
  const bool is_truncated = ids.size() > length_max;
  if (is_truncated && call.side == TruncationSide::Right) ids.resize(length_max);
  if (is_truncated && call.side == TruncationSide::Left) {
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(length_max));
  }
  return {.token_count = static_cast<std::uint32_t>(ids.size()), .is_truncated = is_truncated};
}

void ServingLoop::on_row(ItemKey item, std::span<const std::byte> row) {
  const auto flight = flights_.take(item);
  if (!flight) return;
  auto* model = models_.find(flight->model);
  if (model == nullptr || row.size() != model->row_size * sizeof(float)) {
    return fail_all(*flight, {ErrorKind::Internal, "a worker answered a row of another size"});
  }
  row_buffer_.resize(model->row_size + 1);
  std::memcpy(row_buffer_.data(), row.data(), row.size());
  row_buffer_.back() = length_mark(flight->token_count, flight->is_truncated);
  if (flight->key) cache_->put(*flight->key, row_buffer_, unix_seconds());
  ++counts_.text_count;
  ++model->text_count;
  counts_.token_count += flight->token_count;
  model->token_count += flight->token_count;
  for (const auto& waiter : flight->waiters) {
    auto* call = calls_.find(waiter.call);
    if (call == nullptr) continue;
    std::memcpy(call->row_of(waiter.position).data(), row.data(), row.size());
    call->token_count += flight->token_count;
    if (--call->missing_count == 0) finish(waiter.call);
  }
}

void ServingLoop::on_item_failed(ItemKey item, const Error& error) {
  if (const auto flight = flights_.take(item)) fail_all(*flight, error);
}

void ServingLoop::fail_all(const Flight& flight, const Error& error) {
  for (const auto& waiter : flight.waiters) fail(waiter.call, {.error = error, .retry_after = {}});
}

void ServingLoop::finish(CallId id) {
  const auto call = calls_.take(id);
  const auto& model = *models_.find(call->model);
  const auto taken = seconds(clock_.now() - call->begun_at);
  const auto bound =
      std::lower_bound(ServiceStatus::kBounds.begin(), ServiceStatus::kBounds.end(), taken);
  ++counts_.latency_counts[static_cast<std::size_t>(bound - ServiceStatus::kBounds.begin())];
  counts_.latency_seconds += taken;
  admission_.on_end(call->admission, call->token_count, clock_.now());
  if (call->on_reranked) {
    RerankAnswer answer{
        .model = model.name, .scores = std::move(call->rows), .token_count = call->token_count};
    const auto activation = model.opened.folder.rerank->activation;
    for (auto& score : answer.scores) {
      if (!call->has_scores_raw) score = activate_score(activation, score);
    }
    call->on_reranked(std::move(answer));
  } else {
    call->on_embedded(EmbedAnswer{.model = model.name,
                                  .dim = call->row_size,
                                  .rows = std::move(call->rows),
                                  .token_count = call->token_count,
                                  .cached_count = call->cached_count});
  }
  on_call_end(call->model);
}

void ServingLoop::fail(CallId id, const CallError& failure) {
  const auto call = calls_.take(id);
  if (!call) return;
  ++counts_.failed_count;
  leave_flights(*call);
  tell(*call, failure);
  on_call_end(call->model);
}

void ServingLoop::refuse(CallId id, const CallError& failure) {
  const auto call = calls_.take(id);
  tell(*call, failure);
}

void ServingLoop::tell(Call& call, const CallError& failure) {
  if (call.on_reranked) {
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
  unsent_.erase(call.id);
  admission_.on_end(call.admission, call.token_count, clock_.now());
  for (const auto item : call.items) {
    if (flights_.leave(item, call.id)) fleet_->cancel(item);
  }
  place_soon();
}

void ServingLoop::expire() {
  const auto now = clock_.now();
  while (const auto id = calls_.find_expired(now)) {
    const auto limit = seconds(calls_.find(*id)->limit);
    ++counts_.expired_count;
    fail(*id, refusal(ErrorKind::DeadlineExceeded,
                      fmt::format("no answer within the time allowed: {:.3g} s", limit)));
  }
  if (const auto next = calls_.next_deadline()) deadline_timer_->set(*next);
}

Result<std::vector<TokenizedText>> ServingLoop::tokenize(
    const CallOptions& options, const std::optional<std::string>& prompt_name,
    std::span<const std::string> texts) {
  auto found = models_.find(options.model, ModelTask::Embed);
  if (!found && options.model.empty()) found = models_.find("", ModelTask::Rerank);
  if (!found) found = models_.find(options.model, ModelTask::Rerank);
  auto& model = *MUSTER_TRY(std::move(found));
  const auto prompt = prompt_name
                          ? MUSTER_TRY(find_prompt(model.opened.folder.sentence, prompt_name))
                          : model.opened.prompt_name;
  std::vector<TokenizedText> all(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto encoded =
        model.opened.text_encoder->encode(prompt_text(model.opened.folder.sentence, prompt),
                                          texts[i], options.truncation_side, all[i].ids);
    all[i].is_truncated = encoded.is_truncated;
    if (encoded.is_truncated && !options.truncate.value_or(options_.auto_truncate)) {
      return too_long(model);
    }
  }
  return all;
}

}  // namespace muster
