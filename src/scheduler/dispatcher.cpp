// Work is pulled: a device with a free slot gets a batch cut for it, so a slow device takes less
// without a forecast. A strategy may bind texts to a device beforehand; texts whose device goes are
// bound again. Each text is in exactly one place: a shared queue, a bound queue or a batch that was
// given out. The counts of what waits are kept as texts move, so admission never walks a queue.

#include "scheduler/dispatcher.h"

#include <fmt/compile.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"
#include "scheduler/admission.h"
#include "scheduler/dispatch_books.h"
#include "scheduler/placement.h"

namespace muster {
namespace {

constexpr std::size_t kDecisionsKept = 256;
constexpr std::uint64_t kBulkTokensMin = 64;  // as BatchQueue's smallest share

// Up to so long, as predicted, a lane is given all of its part of what waits in one batch: frames,
// kernel starts and the first reading of the weights are some milliseconds of each.
// Measured on all-MiniLM-L6-v2 in bf16, a core each, texts of 18 tokens: batches of 8, 16, 32 and
// 64 texts (22, 39, 73 and 152 ms) make 370, 407, 441 and 419 texts a second.
constexpr Duration kWorthwhileTime = std::chrono::milliseconds(50);

// What a lane is predicted to have done sooner is not divided among devices: what it costs to send
// a batch, to wake who takes it and to take what comes back is some 0.1 ms of each, of parent and
// worker together.
// Measured with eight devices whose products cost nothing, all on two cores: batches of 500 tokens
// instead of 5,000 are a tenth of all CPU time.
constexpr Duration kIndivisibleTime = std::chrono::milliseconds(1);

// Where many lengths wait, a batch is filled from so many batches' worth of what is next: enough
// that its texts are alike in length, and a call is done at most so many batches later than in
// plain order.
constexpr std::uint64_t kWindowBatches = 4;

// Where somebody asked in so short a time, somebody may ask again before the next batch has ended.
// Without queries a device always has a batch that waits, and is never idle between two; with them
// it is for a frame's way there and back, some 0.3 ms of each batch.
constexpr Duration kQueriesExpected = std::chrono::seconds(10);

std::uint64_t sum_tokens(const std::vector<WorkItem>& items) {
  std::uint64_t sum = 0;
  for (const auto& item : items) sum += item.token_count;
  return sum;
}

}  // namespace

std::string_view strategy_name(Strategy strategy) {
  switch (strategy) {
    case Strategy::Auto:
      return "auto";
    case Strategy::LeastWork:
      return "least_work";
    case Strategy::RoundRobin:
      return "round_robin";
    case Strategy::MemoryUsage:
      return "memory_usage";
    case Strategy::ComputeLoad:
      return "compute_load";
    case Strategy::TaskType:
      return "task_type";
    case Strategy::StaticPartition:
      return "static_partition";
    case Strategy::Expression:
      return "expression";
  }
  return "";
}

Dispatcher::Dispatcher(DispatchOptions options, std::size_t device_count)
    : options_(std::move(options)),
      books_(std::make_unique<DispatchBooks>(device_count)),
      placer_(std::make_unique<Placer>(device_count)) {}

Dispatcher::~Dispatcher() = default;

void Dispatcher::set_options(DispatchOptions options) { options_ = std::move(options); }

void Dispatcher::set_device(std::size_t device, DispatchDevice state, TimePoint now) {
  MUSTER_CHECK(state.weight > 0);
  books_->at(device).state = std::move(state);
  if (suspect_taker_ == device && !books_->at(device).state.is_eligible) suspect_taker_.reset();
  bind_again(device, now);
  bind_waiting(now);
}

const DispatchDevice& Dispatcher::device(std::size_t device) const {
  return books_->at(device).state;
}

void Dispatcher::add(const DispatchItem& item, TimePoint now) {
  queued_in(item.lane).add(1, item.token_count);
  if (item.lane == Lane::Interactive) last_query_at_ = now;
  const auto rank = order(item.lane).add(item.flow, item.token_count);
  auto& known = known_.add(item.key, {.item = item, .bound = {}, .is_given = false, .rank = rank});
  bind_or_wait(known, now);
}

bool Dispatcher::remove(ItemKey key) {
  const auto* found = known_.find(key);
  if (found == nullptr || found->is_given) return false;
  const auto& [item, bound, is_given, rank] = *found;
  auto& waiting = queues(item.model, item.lane);
  const auto work = found->work();
  const bool was_there = bound ? waiting.bound[*bound].remove(work) : waiting.shared.remove(work);
  MUSTER_CHECK(was_there);
  order(item.lane).on_removed(item.flow, item.token_count, rank);
  if (bound) books_->work(*bound, item.model).bound_tokens -= item.token_count;
  queued_in(item.lane).take(1, item.token_count);
  const auto model = item.model;
  known_.erase(key);
  purge(model);
  return true;
}

void Dispatcher::lift(ItemKey key, FlowId flow, TimePoint now) {
  auto* found = known_.find(key);
  if (found == nullptr || found->is_given) return;
  auto& known = *found;
  if (known.item.lane == Lane::Interactive) return;
  auto item = known.item;
  const auto& shared = queues(item.model, item.lane).shared;
  if (!known.bound && shared.is_suspect(key)) return;  // alone it runs whenever it can
  // Not by `remove`, which might take the last text of a model that is to be forgotten.
  auto& waiting = queues(item.model, item.lane);
  (known.bound ? waiting.bound[*known.bound] : waiting.shared).remove(known.work());
  if (known.bound) books_->work(*known.bound, item.model).bound_tokens -= item.token_count;
  order(item.lane).on_removed(item.flow, item.token_count, known.rank);
  queued_in(item.lane).take(1, item.token_count);
  item.lane = Lane::Interactive;
  item.flow = flow;
  queued_in(item.lane).add(1, item.token_count);
  known.item = item;
  known.rank = order(item.lane).add(flow, item.token_count);
  last_query_at_ = now;
  bind_or_wait(known, now);
}

bool Dispatcher::is_with_device(ItemKey key) const {
  const auto* found = known_.find(key);
  return found != nullptr && found->is_given;
}

Dispatcher::Queues& Dispatcher::queues(ModelId model, Lane lane) {
  auto& found = queues_[{lane, model}];
  if (found.bound.empty()) found.bound.resize(books_->size());
  return found;
}

void Dispatcher::bind_or_wait(Known& known, TimePoint now) {
  const auto& item = known.item;
  const auto placement = placer_->place(options_, *books_, item);
  auto& waiting = queues(item.model, item.lane);
  known.bound = placement ? std::optional<std::size_t>(placement->device) : std::nullopt;
  if (!placement) {
    waiting.shared.add(known.work());
    return;
  }
  waiting.bound[placement->device].add(known.work());
  books_->work(placement->device, item.model).bound_tokens += item.token_count;
  note({.at = now,
        .model = item.model,
        .device = placement->device,
        .text_count = 1,
        .token_count = item.token_count,
        .reason = placement->reason});
}

void Dispatcher::bind_again(std::size_t device, TimePoint now) {
  for (auto& [name, waiting] : queues_) {
    const auto model = name.second;
    if (waiting.bound[device].item_count() == 0 || books_->is_eligible(device, model)) continue;
    books_->work(device, model).bound_tokens -= waiting.bound[device].token_count();
    for (const auto& item : waiting.bound[device].take_all()) {
      bind_or_wait(known_.at(item.key), now);
    }
  }
}

void Dispatcher::bind_waiting(TimePoint now) {
  if (options_.strategy == Strategy::Auto) return;
  for (auto& [name, waiting] : queues_) {
    if (waiting.shared.item_count() == 0 || books_->eligible(name.second).empty()) continue;
    for (const auto& item : waiting.shared.take_all()) {
      bind_or_wait(known_.at(item.key), now);
    }
  }
}

// The refusals come first, and their order matters. A device that runs a suspect takes nothing
// else, so that a death has one cause. One that shall run a suspect is emptied before. Slow batches
// leave room in the lanes for a query that is expected.
std::optional<DispatchBatch> Dispatcher::cut(std::size_t device, TimePoint now) {
  const auto& account = books_->at(device);
  if (!account.state.is_eligible || account.in_flight_batches >= account.state.slot_count) {
    return std::nullopt;
  }
  if (account.in_flight_suspects > 0) return std::nullopt;
  if (suspect_taker_.value_or(device) == device) {
    suspect_taker_.reset();
    if (has_suspect_for(device)) suspect_taker_ = device;
    if (suspect_taker_ && account.in_flight_batches > 0) return std::nullopt;
  }
  if (account.in_flight_long >= account.lane_count()) return std::nullopt;
  if (account.in_flight_slow >= account.lane_count() && are_queries_expected(now)) {
    return std::nullopt;
  }
  if (auto batch = cut_lane(device, Lane::Interactive, now)) return batch;
  return cut_lane(device, Lane::Bulk, now);
}

std::optional<DispatchBatch> Dispatcher::cut_lane(std::size_t device, Lane lane, TimePoint now) {
  const auto source = first_source(device, lane);
  if (source.queue == nullptr) return std::nullopt;
  return give(device, source, lane, now);
}

bool Dispatcher::is_only_device(ModelId model, const std::vector<std::size_t>& takers) const {
  if (takers.size() != 1) return false;
  for (std::size_t i = 0; i < books_->size(); ++i) {
    const auto& coming = books_->at(i).state.coming;
    if (std::find(coming.begin(), coming.end(), model) != coming.end()) return false;
  }
  return true;
}

bool Dispatcher::has_suspect_for(std::size_t device) const {
  return std::any_of(queues_.begin(), queues_.end(), [&](const auto& entry) {
    const auto model = entry.first.second;
    const auto& shared = entry.second.shared;
    if (!shared.has_suspect(device, {.is_only_device = true})) return false;
    if (!books_->is_eligible(device, model)) return false;
    const auto takers = books_->takers(model, options_.memory_threshold);
    return std::binary_search(takers.begin(), takers.end(), device) &&
           shared.has_suspect(device, {.is_only_device = is_only_device(model, takers)});
  });
}

/// Of all queues of the lane that this device may take from, the one with the first text.
Dispatcher::Source Dispatcher::first_source(std::size_t device, Lane lane) {
  Source best;
  for (auto queues = queues_.lower_bound({lane, 0});
       queues != queues_.end() && queues->first.first == lane; ++queues) {
    const auto model = queues->first.second;
    auto& [shared, bound] = queues->second;
    if (shared.item_count() + bound[device].item_count() == 0) continue;
    if (!books_->is_eligible(device, model)) continue;
    auto takers = books_->takers(model, options_.memory_threshold);
    const auto limits = limits_of(device, model, lane, takers);
    const bool may_share = std::binary_search(takers.begin(), takers.end(), device);
    if (limits.may_take_suspects && !shared.has_suspect(device, limits)) continue;
    bool is_best = false;
    for (auto* queue : {&shared, &bound[device]}) {
      const bool is_bound = queue != &shared;
      if (is_bound && limits.may_take_suspects) continue;
      if (!is_bound && !may_share) continue;
      const auto first = queue->first(device, limits);
      if (first && (best.queue == nullptr || *first < best.first)) {
        best = {.queue = queue, .model = model, .first = *first, .is_bound = is_bound};
        is_best = true;
      }
    }
    if (is_best) best.takers = std::move(takers);
  }
  return best;
}

DispatchBatch Dispatcher::give(std::size_t device, const Source& source, Lane lane, TimePoint now) {
  auto limits = limits_of(device, source.model, lane, source.takers);
  auto& account = books_->at(device);
  if (source.is_bound) limits.slot_count = account.state.slot_count;
  limits.worthwhile_tokens = worthwhile_tokens(device, source, lane);
  if (lane == Lane::Bulk && are_queries_expected(now)) {
    const auto most = tokens_in_turn(device, source.model, now).value_or(limits.token_budget);
    limits.token_budget = std::min(limits.token_budget, std::max(kBulkTokensMin, most));
  }
  const auto waiting_count = source.queue->item_count();
  auto work = source.queue->cut(device, limits);
  MUSTER_CHECK(work);
  work->id = next_batch_id_++;

  const auto predicted = predict(device, source.model, work->token_count).value_or(Duration{0});
  const auto ends_at = begins_at(device, now) + predicted;
  auto& given = given_[work->id];
  given = {.device = device,
           .ends_at = ends_at,
           .token_count = work->token_count,
           .is_suspect = work->strike_count > 0,
           .is_long = is_long(predicted),
           .holds_queries_up = holds_queries_up(lane, predicted),
           .keys = {}};
  given.keys.reserve(work->items.size());
  for (const auto& item : work->items) {
    given.keys.push_back(item.key);
    auto& known = known_.at(item.key);
    known.is_given = true;
    order(lane).on_given(known.item.flow, item.token_count, item.rank);
  }
  auto& books = books_->work(device, source.model);
  ++account.in_flight_batches;
  account.in_flight_suspects += given.is_suspect ? 1 : 0;
  account.in_flight_long += given.is_long ? 1 : 0;
  account.in_flight_slow += given.holds_queries_up ? 1 : 0;
  books.in_flight_tokens += work->token_count;
  if (source.is_bound) books.bound_tokens -= work->token_count;
  queued_in(lane).take(work->items.size(), work->token_count);
  const auto* which = source.is_bound    ? "bound to this device"
                      : given.is_suspect ? "that wait; alone, as its last batch ended a worker"
                                         : "that wait for any device";
  note({.at = now,
        .model = source.model,
        .device = device,
        .batch = work->id,
        .text_count = work->items.size(),
        .token_count = work->token_count,
        .reason = fmt::format(FMT_COMPILE("free slot; {} of {} texts {}"), work->items.size(),
                              waiting_count, which)});
  return {std::move(*work), source.model, lane};
}

// All slots of the devices that take count, as the batches in them end one after the other. Weights
// shift only how the last texts are shared out: while much waits, who is free takes a full batch.
CutLimits Dispatcher::limits_of(std::size_t device, ModelId model, Lane lane,
                                const std::vector<std::size_t>& takers) const {
  const auto& account = books_->at(device);
  double slots = 0;
  for (const auto i : takers) {
    const auto& other = books_->at(i).state;
    slots += static_cast<double>(other.slot_count) * (other.weight / account.state.weight);
  }
  const auto budget = token_budget(device, model, lane);
  return {.token_budget = budget,
          .slot_count = static_cast<std::uint64_t>(std::ceil(slots)),
          .is_only_device = is_only_device(model, takers),
          .may_take_suspects = suspect_taker_ == device,
          .rank_window =
              options_.batch_time_most == Duration::max() ? UINT64_MAX : kWindowBatches * budget};
}

/// What a lane of this device still has to take so that all lanes of those that take from the queue
/// end together, each by its speed: an even share of all that waits or is in flight, less what the
/// next free lane has before it. But no more than is worth its while, and of bulk texts at least
/// what it does in kIndivisibleTime, whatever the weights.
std::uint64_t Dispatcher::worthwhile_tokens(std::size_t device, const Source& source,
                                            Lane lane) const {
  const auto within = tokens_within(kWorthwhileTime, device, source.model);
  if (!within) return 0;
  std::span<const std::size_t> sharing(source.takers);
  if (source.is_bound) sharing = {&device, 1};
  double all_tokens = static_cast<double>(source.queue->token_count());
  double all_speed = 0;
  for (const auto i : sharing) {
    all_tokens += static_cast<double>(books_->in_flight_tokens(i));
    all_speed += books_->weighted_speed(i, source.model);
  }
  const auto& own = books_->at(device);
  const double share = all_tokens * books_->weighted_speed(device, source.model) / all_speed /
                       static_cast<double>(own.lane_count());
  // Batches of their mean size, one behind the other in each lane.
  const auto batches = own.in_flight_batches;
  const auto rows = batches / own.lane_count();
  const double ahead = batches == 0 ? 0
                                    : static_cast<double>(books_->in_flight_tokens(device)) *
                                          static_cast<double>(rows) / static_cast<double>(batches);
  const auto part =
      share <= ahead ? 0 : std::min(*within, static_cast<std::uint64_t>(std::ceil(share - ahead)));
  if (lane == Lane::Interactive) return part;
  return std::max(part, tokens_within(kIndivisibleTime, device, source.model).value_or(0));
}

bool Dispatcher::are_queries_expected(TimePoint now) const {
  return last_query_at_ && now - *last_query_at_ < kQueriesExpected;
}

bool Dispatcher::holds_queries_up(Lane lane, Duration predicted) const {
  if (lane == Lane::Interactive || options_.batch_time_most >= Duration::max() / 2) return false;
  return predicted > options_.batch_time_most / 4;
}

// Twice, so that a batch that was cut to `batch_time_most` does not count when speeds waver.
bool Dispatcher::is_long(Duration predicted) const {
  if (options_.batch_time_most >= Duration::max() / 2) return false;
  return predicted > 2 * options_.batch_time_most;
}

std::uint64_t Dispatcher::token_budget(std::size_t device, ModelId model, Lane lane) const {
  const auto most = books_->at(device).state.token_budget;
  if (lane == Lane::Interactive || options_.batch_time_most == Duration::max()) return most;
  const auto within = tokens_within(options_.batch_time_most, device, model);
  return within ? std::min(most, std::max(kBulkTokensMin, *within)) : most;
}

/// The largest batch, up to the device's budget, that is predicted to take no longer; nullopt while
/// nothing is known.
std::optional<std::uint64_t> Dispatcher::tokens_within(Duration time, std::size_t device,
                                                       ModelId model) const {
  auto budget = books_->at(device).state.token_budget;
  // A few steps towards the size that is predicted to take so long; costs are nearly linear.
  for (int step = 0; step < 4 && budget > kBulkTokensMin; ++step) {
    const auto predicted = predict(device, model, budget);
    if (!predicted) return std::nullopt;
    if (*predicted <= time) break;
    budget = static_cast<std::uint64_t>(static_cast<double>(budget) * seconds(time) /
                                        seconds(*predicted));
  }
  return budget;
}

/// Takes a batch off the books of its device. Its texts are still known.
Dispatcher::Given Dispatcher::take_given(std::size_t device, const DispatchBatch& batch) {
  const auto found = given_.find(batch.work.id);
  MUSTER_CHECK(found != given_.end() && found->second.device == device);
  auto given = std::move(found->second);
  given_.erase(found);
  auto& account = books_->at(device);
  --account.in_flight_batches;
  account.in_flight_suspects -= given.is_suspect ? 1 : 0;
  account.in_flight_long -= given.is_long ? 1 : 0;
  account.in_flight_slow -= given.holds_queries_up ? 1 : 0;
  books_->work(device, batch.model).in_flight_tokens -= given.token_count;
  return given;
}

/// The same: its texts that came back. All of the batch are forgotten.
std::vector<Dispatcher::Known> Dispatcher::settle(std::size_t device, const DispatchBatch& batch) {
  const auto given = take_given(device, batch);
  std::vector<Known> items;
  items.reserve(batch.work.items.size());
  for (const auto& item : batch.work.items) items.push_back(known_.at(item.key));
  for (const auto key : given.keys) known_.erase(key);
  return items;
}

// A text that came back waits again with the rank that it had.
Dispatcher::Known& Dispatcher::wait_again(Known known) {
  const auto& item = known.item;
  queued_in(item.lane).add(1, item.token_count);
  order(item.lane).add_again(item.flow, item.token_count);
  known.bound.reset();
  known.is_given = false;
  return known_.add(item.key, known);
}

void Dispatcher::on_served(std::size_t device, const DispatchBatch& batch, Duration engine) {
  const auto given = take_given(device, batch);
  for (const auto key : given.keys) known_.erase(key);
  books_->work(device, batch.model).cost.learn(given.token_count, engine);
  purge(batch.model);
}

void Dispatcher::calibrate(std::size_t device, ModelId model, std::uint64_t tokens,
                           Duration engine) {
  books_->work(device, model).cost.learn(tokens, engine);
}

void Dispatcher::give_back(std::size_t device, DispatchBatch batch, TimePoint now) {
  const auto items = settle(device, batch);
  if (items.empty()) return purge(batch.model);
  batch.work.token_count = sum_tokens(batch.work.items);
  for (const auto& item : items) {
    auto& known = wait_again(item);
    if (batch.work.strike_count == 0) bind_or_wait(known, now);
  }
  if (batch.work.strike_count > 0) {
    queues(batch.model, batch.lane).shared.give_back(std::move(batch.work));
  }
}

std::optional<ItemKey> Dispatcher::strike(std::size_t device, DispatchBatch batch,
                                          TimePoint /*now*/) {
  const auto items = settle(device, batch);
  if (items.empty()) return std::nullopt;
  batch.work.token_count = sum_tokens(batch.work.items);
  const auto killer = queues(batch.model, batch.lane).shared.strike(std::move(batch.work), device);
  if (killer) {
    purge(batch.model);
    return killer;
  }
  for (const auto& item : items) wait_again(item);
  return std::nullopt;
}

void Dispatcher::retry(std::size_t device, DispatchBatch batch) {
  const auto items = settle(device, batch);
  if (items.empty()) return;
  batch.work.token_count = sum_tokens(batch.work.items);
  for (const auto& item : items) wait_again(item);
  queues(batch.model, batch.lane).shared.retry(std::move(batch.work), device);
}

void Dispatcher::forget(ModelId model) {
  gone_.insert(model);
  purge(model);
}

// The books of a model go with its last text: a batch in flight still has to be settled in them.
void Dispatcher::purge(ModelId model) {
  if (!gone_.contains(model)) return;
  bool is_known = false;
  known_.visit([&](ItemKey, const Known& known) { is_known |= known.item.model == model; });
  if (is_known) return;
  for (const auto lane : {Lane::Interactive, Lane::Bulk}) queues_.erase({lane, model});
  books_->forget(model);
  gone_.erase(model);
}

std::uint64_t Dispatcher::queued_text_count() const {
  std::uint64_t sum = 0;
  for (const auto& lane : queued_) sum += lane.text_count;
  return sum;
}

std::uint64_t Dispatcher::queued_token_count() const {
  std::uint64_t sum = 0;
  for (const auto& lane : queued_) sum += lane.token_count;
  return sum;
}

std::uint64_t Dispatcher::tokens_ahead(Lane lane) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(lane); ++i)
    sum += queued_.at(i).token_count;
  for (std::size_t i = 0; i < books_->size(); ++i) sum += books_->in_flight_tokens(i);
  return sum;
}

QueueState Dispatcher::queue_state(ModelId model, Lane lane, FlowId flow,
                                   std::uint64_t tokens) const {
  const auto at = static_cast<std::size_t>(lane);
  const auto ahead = tokens_ahead(lane) - queued_.at(at).token_count;
  QueueState state{.queued_texts = queued_text_count(),
                   .outstanding_tokens = tokens_ahead(Lane::Bulk),
                   .tokens_ahead = ahead + orders_.at(at).tokens_ahead(flow, tokens),
                   .tokens_per_second = tokens_per_second(model),
                   .eligible_device_count = 0};
  for (std::size_t i = 0; i < books_->size(); ++i) {
    state.eligible_device_count += books_->at(i).state.is_eligible ? 1 : 0;
  }
  return state;
}

std::uint64_t Dispatcher::in_flight_token_count(std::size_t device) const {
  return books_->in_flight_tokens(device);
}

std::uint64_t Dispatcher::bound_token_count(std::size_t device) const {
  return books_->bound_tokens(device);
}

std::vector<Decision> Dispatcher::decisions() const {
  return {decisions_.begin(), decisions_.end()};
}

void Dispatcher::note(Decision decision) {
  if (decisions_.size() == kDecisionsKept) decisions_.pop_front();
  decisions_.push_back(std::move(decision));
}

}  // namespace muster
