// The part of the service that sends the texts of calls to the fleet, and takes their rows.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/wall_clock.h"
#include "serving/row_mark.h"
#include "serving/serving_loop.h"
#include "serving/tokenized_text.h"

namespace muster {
namespace {

// A loop that tokenises for longer than this keeps others waiting; the rest follows in a later
// turn.
constexpr Duration kTurn = std::chrono::milliseconds(2);

// A longer text may take longer than a turn: combining marks and texts cut at the left are read to
// their end, some 10 MB a second.
constexpr std::size_t kInlineBytes = 16 * 1024;
constexpr std::size_t kInlineIds = 16 * 1024;  // to be decoded: about a millisecond

constexpr std::size_t kSampleBytes = 1024;

// What sending a text costs beside its bytes, in bytes: a look for its key and its place in the
// books take some microseconds, in which some tens of bytes are tokenised.
constexpr std::size_t kTextBytes = 64;

Error too_long(const ServingModel& model) {
  return {ErrorKind::InvalidArgument,
          fmt::format("the text is longer than the model can take: more than {} tokens, and "
                      "truncation was refused",
                      model.opened.text_encoder->length_max())};
}

// At most so many bytes of it, and no broken character at the end.
std::string_view beginning_of(std::string_view text, std::size_t byte_count) {
  if (text.size() <= byte_count) return text;
  while (byte_count > 0 && (static_cast<unsigned char>(text[byte_count]) & 0xC0U) == 0x80U) {
    --byte_count;
  }
  return text.substr(0, byte_count);
}

std::uint32_t special_count(const ServingModel& model) {
  const auto& tokenizer = model.opened.text_encoder->tokenizer();
  return model.task == ModelTask::Rerank ? tokenizer.pair_special_token_count()
                                         : tokenizer.special_token_count();
}

void learn(ServingModel& model, const EncodedText& encoded) {
  if (encoded.is_truncated || encoded.byte_count == 0) return;
  const auto special = special_count(model);
  model.token_estimate.learn(
      encoded.byte_count, encoded.ids.size() - std::min<std::size_t>(special, encoded.ids.size()));
}

}  // namespace

/// From the bytes, by what the last texts have had: tokenising comes after a call is let in.
std::uint64_t ServingLoop::estimate_tokens(const Call& call, ServingModel& model) {
  const std::uint64_t length_max = model.opened.text_encoder->length_max();
  std::uint64_t sum = 0;
  if (!call.ids.empty()) {
    for (const auto& miss : call.misses) {
      sum += std::min<std::uint64_t>(length_max, call.ids[miss.position].size());
    }
    return sum;
  }
  if (!model.token_estimate.is_known()) sample_tokens(call, model);
  for (const auto& miss : call.misses) {
    const auto& query = call.query_of(miss.position);
    const auto more = call.prompt.size() + (query ? query->text().size() : 0);
    const auto tokens = model.token_estimate.tokens(call.texts[miss.position].size() + more);
    sum += std::min(length_max, tokens + special_count(model));
  }
  return sum;
}

// The first call of a model tells by the beginning of one of its texts. A token has a byte at
// least, so that the sample is never cut.
void ServingLoop::sample_tokens(const Call& call, ServingModel& model) {
  auto& encoder = *model.opened.text_encoder;
  const auto room = encoder.length_max() - encoder.tokenizer().special_token_count();
  const auto byte_count = std::min<std::size_t>(kSampleBytes, room);
  for (const auto& miss : call.misses) {
    const auto& text = call.texts[miss.position];
    if (text.empty()) continue;
    const auto begin = beginning_of(text, byte_count);
    std::vector<TokenId> ids;
    const auto encoded = encoder.encode("", begin, TruncationSide::Right, ids);
    if (encoded.is_truncated) return;  // lower case may be longer
    model.token_estimate.learn(begin.size(),
                               ids.size() - encoder.tokenizer().special_token_count());
    return;
  }
}

void ServingLoop::queue_texts(Call& call) {
  call.unsent_tokens = call.admission.token_estimate;
  const bool is_work = !call.on_tokenized;
  unsent_of(call).add(call.id, call.flow, is_work ? call.misses.size() : 0,
                      is_work ? call.unsent_tokens : 0);
  if (!is_sending_posted_ && !is_sending_) send_texts();
}

UnsentTexts& ServingLoop::unsent_of(const Call& call) {
  return unsent_.at(call.on_tokenized ? kLaneCount : static_cast<std::size_t>(call.lane));
}

/// The first call that has a text to send now: queries first, and within a lane keys in turns.
Call* ServingLoop::next_unsent(std::size_t first_queue) {
  for (auto queue = first_queue; queue < unsent_.size(); ++queue) {
    while (const auto id = unsent_.at(queue).first()) {
      auto* call = calls_.find(*id);
      if (call != nullptr && !call->aside && call->next_miss < call->misses.size()) return call;
      unsent_.at(queue).drop_first();
    }
  }
  return nullptr;
}

// One turn of the loop for all calls together, however many have come.
void ServingLoop::send_texts() {
  is_sending_ = true;
  const auto begin = clock_.now();
  auto* call = next_unsent();
  while (call != nullptr && clock_.now() - begin <= kTurn) {
    send_in_turn(*call);
    call = next_unsent();
  }
  // However much goes before them, those that ask for tokens alone get on by a text a turn.
  if (auto* last = call != nullptr ? next_unsent(kLaneCount) : nullptr) {
    send_in_turn(*last);
    call = next_unsent();
  }
  is_sending_ = false;
  if (call != nullptr && !std::exchange(is_sending_posted_, true)) {
    loop_.post([this] {
      is_sending_posted_ = false;
      send_texts();
    });
  }
  place_soon();
}

// The call may end by it. What is encoded aside takes no more of this thread than a short text.
void ServingLoop::send_in_turn(Call& call) {
  const auto position = call.misses[call.next_miss].position;
  const auto bytes = call.ids.empty() ? call.prompt.size() + call.texts[position].size()
                                      : call.ids[position].size() * sizeof(TokenId);
  auto& queue = unsent_of(call);
  const auto flow = call.flow;
  send_next(call);
  queue.charge(flow, std::min(bytes, kInlineBytes) + kTextBytes);
}

void ServingLoop::send_next(Call& call) {
  auto& model = *models_.find(call.model);
  const auto& miss = call.misses[call.next_miss];
  auto& encoder = *model.opened.text_encoder;
  if (call.on_tokenized && !call.ids.empty()) return decode_next(call, model);
  if (!call.on_tokenized && !call.is_of_pairs()) {
    if (const auto* flight = flights_.find(call.model, miss.key)) {
      if (flight->is_truncated && !call.may_truncate) {
        return fail(call.id, {.error = too_long(model), .retry_after = {}});
      }
      join_flight(call, miss);
      return count_sent(call);
    }
    if (!call.ids.empty()) {
      auto ids = cut_ids(encoder, std::move(call.ids[miss.position]), call.side);
      return accept(call, model, std::move(ids));
    }
  }
  TextToEncode text{.text = std::exchange(call.texts[miss.position], {}),
                    .prompt = call.prompt,
                    .side = call.side,
                    .query = call.query_of(miss.position).get()};
  if (text.byte_count() > kInlineBytes) return encode_aside(call, model, std::move(text));
  accept(call, model, encode_text(encoder, text));
}

// The ids of one text as text: no device is needed, and the last one ends the call.
void ServingLoop::decode_next(Call& call, ServingModel& model) {
  const auto position = call.misses[call.next_miss].position;
  auto ids = std::exchange(call.ids[position], {});
  if (ids.size() > kInlineIds) return decode_aside(call, model, std::move(ids));
  call.tokenized[position].text =
      model.opened.text_encoder->tokenizer().decode(ids, call.skips_special_tokens);
  if (++call.next_miss == call.misses.size()) finish(call.id);
}

void ServingLoop::join_flight(Call& call, const CallMiss& miss) {
  auto& flight = *flights_.find(call.model, miss.key);
  flight.waiters.push_back({.call = call.id, .position = miss.position});
  call.items.push_back(flight.item);
  ++counts_.shared_count;
  if (call.lane == Lane::Interactive) fleet_->texts().lift(flight.item, call.flow);
}

// The call waits meanwhile, and no other does: one text of a call at a time is aside. The call
// holds it, so that one that ends costs neither memory nor the other thread's time.
void ServingLoop::encode_aside(Call& call, ServingModel& model, TextToEncode text) {
  if (!model.aside_encoder) model.aside_encoder = model.opened.text_encoder->another();
  struct Task {
    std::shared_ptr<TextEncoder> encoder;
    std::shared_ptr<Tokenizer::FirstOfPairs> query;  // the call may end before the text is done
    std::string prompt;
    TextToEncode text;
    EncodedText done;
  };
  const auto task = std::make_shared<Task>(Task{model.aside_encoder,
                                                call.query_of(call.misses[call.next_miss].position),
                                                std::string(text.prompt),
                                                std::move(text),
                                                {}});
  task->text.prompt = task->prompt;
  call.aside = task;
  do_aside(call, [this, id = call.id, wanted = std::weak_ptr<Task>(task)] {
    const auto held = wanted.lock();
    if (!held) return;
    held->done = encode_text(*held->encoder, held->text);
    loop_.post([this, id, held] { on_encoded(id, std::move(held->done)); });
  });
}

void ServingLoop::decode_aside(Call& call, ServingModel& model, std::vector<TokenId> ids) {
  if (!model.aside_encoder) model.aside_encoder = model.opened.text_encoder->another();
  struct Task {
    std::shared_ptr<TextEncoder> encoder;
    std::vector<TokenId> ids;
    bool skips_special_tokens = false;
    std::string done;
  };
  const auto task = std::make_shared<Task>(
      Task{model.aside_encoder, std::move(ids), call.skips_special_tokens, {}});
  call.aside = task;
  do_aside(call, [this, id = call.id, wanted = std::weak_ptr<Task>(task)] {
    const auto held = wanted.lock();
    if (!held) return;
    held->done = held->encoder->tokenizer().decode(held->ids, held->skips_special_tokens);
    loop_.post([this, id, held] { on_decoded(id, std::move(held->done)); });
  });
}

// On the thread for long texts. The call fails where too many wait.
void ServingLoop::do_aside(const Call& call, const std::function<void()>& job) {
  if (!encoder_.joinable()) {
    encoder_ = std::jthread([this] {
      while (const auto next = asides_.take()) {
        if (!is_ending_) (*next)();
      }
    });
  }
  if (asides_.push(job)) return;
  fail(call.id,
       {.error = {ErrorKind::ResourceExhausted,
                  fmt::format("too many long texts wait to be tokenised: {}", kAsidesMost)},
        .retry_after = std::chrono::seconds(1)});
}

void ServingLoop::on_encoded(CallId id, EncodedText encoded) {
  auto* call = calls_.find(id);
  if (call == nullptr) return;
  call->aside.reset();
  accept(*call, *models_.find(call->model), std::move(encoded));
  go_on(id);
}

void ServingLoop::on_decoded(CallId id, std::string text) {
  auto* call = calls_.find(id);
  if (call == nullptr) return;
  call->aside.reset();
  call->tokenized[call->misses[call->next_miss].position].text = std::move(text);
  if (++call->next_miss == call->misses.size()) finish(id);
  go_on(id);
}

// The call's next text may be sent, if it has not ended.
void ServingLoop::go_on(CallId id) {
  const auto* call = calls_.find(id);
  if (call == nullptr) return place_soon();
  unsent_of(*call).add_first(id, call->flow);
  if (!is_sending_posted_) send_texts();
}

/// The first text of the call that is not sent yet has been encoded.
void ServingLoop::accept(Call& call, ServingModel& model, EncodedText encoded) {
  if (encoded.is_truncated && !call.may_truncate) {
    return fail(call.id, {.error = too_long(model), .retry_after = {}});
  }
  learn(model, encoded);
  const auto& miss = call.misses[call.next_miss];
  if (call.on_tokenized) {
    call.tokenized[miss.position] = tokenized_text(
        model.opened.text_encoder->tokenizer(), std::move(encoded),
        {.has_special_tokens = call.has_special_tokens, .wants_pieces = call.wants_pieces});
    if (++call.next_miss == call.misses.size()) finish(call.id);
    return;
  }
  const bool has_segments = model.opened.folder.rerank && model.opened.folder.rerank->has_segments;
  if (!has_segments) encoded.first_segment = 0;
  if (!call.is_of_pairs() &&
      flights_.find(call.model, miss.key) != nullptr) {  // it came while this one was aside
    join_flight(call, miss);
  } else {
    submit(call, miss, std::move(encoded));
  }
  count_sent(call);
}

void ServingLoop::submit(Call& call, const CallMiss& miss, EncodedText encoded) {
  auto& flight =
      flights_.add(call.model, call.is_of_pairs() ? std::nullopt : std::optional(miss.key));
  flight.token_count = static_cast<std::uint32_t>(encoded.ids.size());
  flight.is_truncated = encoded.is_truncated;
  flight.waiters.push_back({.call = call.id, .position = miss.position});
  call.items.push_back(flight.item);
  std::uint64_t affinity = 0;
  std::memcpy(&affinity, miss.key.data(), sizeof affinity);
  fleet_->texts().submit({.item = {.key = flight.item,
                                   .model = call.model,
                                   .token_count = flight.token_count,
                                   .lane = call.lane,
                                   .type = call.type,
                                   .affinity = affinity,
                                   .flow = call.flow},
                          .ids = std::move(encoded.ids),
                          .first_segment = encoded.first_segment});
}

void ServingLoop::count_sent(Call& call) {
  const auto left = call.misses.size() - call.next_miss;
  const auto tokens = call.unsent_tokens / left;
  unsent_of(call).subtract(call.flow, 1, tokens);
  call.unsent_tokens -= tokens;
  ++call.next_miss;
}

/// A call ends with texts that were never sent.
void ServingLoop::forget_unsent(const Call& call) {
  if (call.on_tokenized || call.next_miss == call.misses.size()) return;
  unsent_of(call).subtract(call.flow, call.misses.size() - call.next_miss, call.unsent_tokens);
}

void ServingLoop::on_row(ItemKey item, std::span<const std::byte> row, std::size_t device) {
  const auto flight = flights_.take(item);
  if (!flight) return;
  auto* model = models_.find(flight->model);
  if (model == nullptr || row.size() != model->row_size * sizeof(float)) {
    return fail_all(*flight, {ErrorKind::Internal, "a worker answered a row of another size"});
  }
  row_buffer_.resize(model->row_size + 1);
  std::memcpy(row_buffer_.data(), row.data(), row.size());
  row_buffer_.back() = length_mark(flight->token_count, flight->is_truncated);
  cache_row(*flight, *model, device);
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

/// Under the key of the engine that computed it: what another one computes may have other bits.
void ServingLoop::cache_row(const Flight& flight, const ServingModel& model, std::size_t device) {
  if (!flight.key) return;
  const auto& engine_class = device_classes_.at(device);
  const bool is_first = engine_class == model.engine_classes.front();
  const auto key = is_first ? *flight.key : ServingModel::key_of_class(*flight.key, engine_class);
  cache_->put(key, row_buffer_, unix_seconds());
  cached_devices_.insert(device);
}

// Which of the device's rows are wrong nobody knows, and they would be served for as long as they
// are kept, by a server that starts later too.
void ServingLoop::on_wrong_canary(std::size_t device) {
  if (!cache_ || !cached_devices_.contains(device)) return;
  cached_devices_.clear();
  cache_->clear();
  notice(fmt::format("the cache is emptied: {} gave a wrong vector, and rows of its are in it",
                     options_.devices.at(device).name()));
}

// Memory that a device lacks is no limit of the caller's: not 429, but 503, and worth another try.
void ServingLoop::on_item_failed(ItemKey item, const Error& error) {
  const auto flight = flights_.take(item);
  if (!flight) return;
  if (error.kind != ErrorKind::ResourceExhausted) return fail_all(*flight, error);
  fail_all(*flight, {ErrorKind::Unavailable,
                     fmt::format("no device has the memory for this text now: {}", error.message)});
}

void ServingLoop::fail_all(const Flight& flight, const Error& error) {
  for (const auto& waiter : flight.waiters) fail(waiter.call, {.error = error, .retry_after = {}});
}

}  // namespace muster
