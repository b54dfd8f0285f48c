// Texts on their way to groups and their rows on the way back. A batch is built from the texts' ids
// when it is sent and not kept: the ids stay with the text, so that a lost batch costs no copy.

#include "coordinator/in_flight_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kTextsAhead = 8;  // which are fetched while rows are delivered

/// Of float32 as bytes: an exponent of all ones is an infinity or no number. Two values at a time:
/// one more in the exponent's lowest bit carries into the sign's where all were ones, and nowhere
/// else, so the loop over all that comes back has no comparison in it. Four times two in a step,
/// which compilers make vector code of.
bool is_finite(std::span<const std::byte> values) {
  constexpr std::uint64_t kExponents = 0x7F800000'7F800000;
  constexpr std::uint64_t kLowestBits = 0x00800000'00800000;
  constexpr std::uint64_t kSigns = 0x80000000'80000000;
  std::array<std::uint64_t, 4> sums{};
  std::size_t at = 0;
  for (; at + sizeof sums <= values.size(); at += sizeof sums) {
    std::array<std::uint64_t, 4> bits{};
    std::memcpy(bits.data(), values.data() + at, sizeof bits);
    for (std::size_t i = 0; i < bits.size(); ++i) sums[i] |= (bits[i] & kExponents) + kLowestBits;
  }
  auto found = sums[0] | sums[1] | sums[2] | sums[3];
  for (; at + sizeof(float) <= values.size(); at += sizeof(float)) {  // what is left
    std::uint32_t bits = 0;
    std::memcpy(&bits, values.data() + at, sizeof bits);
    found |= (bits & kExponents) + kLowestBits;
  }
  return (found & kSigns) == 0;
}

}  // namespace

InFlightWork::InFlightWork(Options options, Parts parts)
    : parts_(std::move(parts)),
      is_low_latency_(options.is_low_latency),
      dispatcher_(std::move(options.dispatch), options.group_count) {
  for (std::size_t i = 0; i < options.group_count; ++i) {
    auto& group = groups_.emplace_back(options.batch_tokens);
    const auto weight = options.weights.find(i);
    if (weight != options.weights.end()) group.weight = weight->second;
  }
}

// A refusal is delivered by a later step and never from inside, so the caller is not called back
// while it submits.
void InFlightWork::submit(FleetItem item) {
  const auto key = item.item.key;
  const auto model = item.item.model;
  parts_.signal.make_due();
  if (!parts_.models.is_served(model)) {
    refused_.emplace_back(key, Error{ErrorKind::NotFound, "no such model is loaded"});
    return;
  }
  if (!parts_.models.may_be_loaded(model)) {
    refused_.emplace_back(key, Error{ErrorKind::Unavailable, "the model cannot be loaded"});
    return;
  }
  // A run has a million texts, and of these nobody asks when they came.
  const bool is_timed = dispatcher_.looks_at_time(item.item);
  dispatcher_.add(item.item, is_timed ? parts_.clock.now() : TimePoint{});
  texts_.add(key, Text{.item = std::move(item)});
}

// Only where nothing is in flight: a worker that is busy has its core awake already.
void InFlightWork::expect() {
  const auto now = parts_.clock.now();
  if (!is_low_latency_ || groups_.empty() || !texts_.empty() || now - expected_at_ < kExpectTime)
    return;
  if (!is_eligible(last_fed_) || !parts_.groups.sent(last_fed_).empty()) return;
  expected_at_ = now;
  parts_.groups.tell(last_fed_, MessageType::Expect, {});
}

void InFlightWork::lift(ItemKey key, FlowId flow) {
  parts_.signal.make_due();
  dispatcher_.lift(key, flow, parts_.clock.now());
}

bool InFlightWork::cancel(ItemKey key) {
  const auto refused = std::find_if(refused_.begin(), refused_.end(),
                                    [key](const auto& entry) { return entry.first == key; });
  if (refused != refused_.end()) {
    refused_.erase(refused);
    return true;
  }
  if (!texts_.erase(key)) return false;
  // One that is with a group comes back to nobody.
  dispatcher_.remove(key);
  return true;
}

void InFlightWork::set_dispatch(DispatchOptions options) {
  dispatcher_.set_options(std::move(options));
  parts_.signal.wake();
}

void InFlightWork::set_readings(std::size_t group, const DispatchDevice& readings) {
  groups_.at(group).readings = readings;
  update_group(group);
  if (dispatcher_.queued_text_count() > 0) parts_.signal.wake();
}

std::optional<Duration> InFlightWork::predict(std::size_t group, ModelId model,
                                              std::uint64_t token_count) const {
  return dispatcher_.predict(group, model, token_count);
}

std::uint64_t InFlightWork::token_budget(std::size_t group) const {
  return groups_[group].budget.now();
}

void InFlightWork::calibrate(std::size_t group, ModelId model, const LoadTrial::Measure& measure) {
  dispatcher_.calibrate(group, model, measure.token_count, measure.engine);
}

void InFlightWork::on_out_of_memory(std::size_t group, std::uint64_t token_count) {
  groups_[group].budget.on_out_of_memory(token_count);
}

// Where a text alone has found no memory, what else the group had may have taken it.
std::size_t InFlightWork::slot_count(std::size_t index) const {
  return groups_[index].lone_count > 0 ? 1 : parts_.groups.sent(index).size_most();
}

void InFlightWork::feed() {
  feed_in_turns(
      groups_.size(), [this](std::size_t i) { return parts_.groups.sent(i).size(); },
      [this](std::size_t i) { return is_eligible(i) ? slot_count(i) : std::size_t{0}; },
      [this] { return dispatcher_.queued_text_count() == 0; },
      [this](std::size_t i) {
        auto batch = dispatcher_.cut(i, parts_.clock.now());
        if (batch) send_batch(i, std::move(*batch));
      });
}

void InFlightWork::send_batch(std::size_t index, DispatchBatch batch) {
  Batch message;
  message.model_id = batch.model;
  message.lengths.reserve(batch.work.items.size());
  message.ids.reserve(batch.work.token_count);
  message.first_segments.reserve(batch.work.items.size());
  bool has_pairs = false;
  std::uint64_t longest = 0;
  for (const auto& item : batch.work.items) {
    longest = std::max<std::uint64_t>(longest, item.token_count);
    const auto& text = texts_.at(item.key).item;
    const auto ids = text.ids.values();
    message.lengths.push_back(static_cast<std::uint32_t>(ids.size()));
    message.ids.insert(message.ids.end(), ids.begin(), ids.end());
    message.first_segments.push_back(text.first_segment);
    has_pairs |= text.first_segment != 0;
  }
  if (!has_pairs) message.first_segments.clear();
  const auto frame = parts_.groups.send(index,
                                        {.kind = FrameKind::Batch,
                                         .model = message.model_id,
                                         .text_count = message.lengths.size(),
                                         .token_count = message.ids.size(),
                                         .longest_text = longest},
                                        encode(message));
  groups_[index].batches.emplace_back(frame, std::move(batch));
  last_fed_ = index;
}

std::optional<std::size_t> InFlightWork::group_of_only_text() const {
  if (texts_.size() != 1) return std::nullopt;
  const bool is_only =
      parts_.groups.life(last_fed_).is_alive() && parts_.groups.sent(last_fed_).size() == 1;
  return is_only ? std::optional(last_fed_) : std::nullopt;
}

// A group that is accused gets nothing until its canary has answered.
bool InFlightWork::is_eligible(std::size_t group) const {
  return parts_.groups.life(group).is_serving() && !groups_[group].accusation &&
         parts_.models.has_ready_model(group);
}

// Models on their way count as coming only while the group starts: a dispatcher that knows of them
// does not take another device for the only one.
void InFlightWork::update_group(std::size_t group) {
  const auto& life = parts_.groups.life(group);
  auto state = groups_[group].readings;
  state.is_eligible = is_eligible(group);
  state.slot_count = slot_count(group);
  state.token_budget = groups_[group].budget.now();
  state.weight = groups_[group].weight;
  state.models.clear();
  state.coming.clear();
  const bool is_starting = life.state(parts_.models.together(group)) == GroupState::Starting;
  for (const auto& [id, here] : parts_.models.on(group)) {
    if (here.takes_work()) state.models.push_back(id);
    if (is_starting && !here.is_ready()) state.coming.push_back(id);
  }
  dispatcher_.set_device(group, std::move(state), parts_.clock.now());
}

std::optional<DispatchBatch> InFlightWork::take_batch(std::size_t index, std::uint64_t frame) {
  auto& batches = groups_[index].batches;
  const auto found = std::find_if(batches.begin(), batches.end(),
                                  [frame](const auto& entry) { return entry.first == frame; });
  if (found == batches.end()) return std::nullopt;
  auto batch = std::move(found->second);
  batches.erase(found);
  return batch;
}

// The books are settled before any row is delivered: a receiver may submit more at once.
void InFlightWork::on_rows(std::size_t group, std::uint64_t frame, const Rows& rows) {
  auto taken = take_batch(group, frame);
  if (!taken) return;
  if (!is_finite(rows.rows)) return on_some_not_finite(group, *std::move(taken), rows);
  const auto& items = taken->work.items;
  on_whole_batch(group, *taken, rows);
  groups_[group].text_count += items.size();
  ++groups_[group].batch_count;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i + kTextsAhead < items.size()) texts_.prefetch(items[i + kTextsAhead].key);
    deliver(group, items[i].key, rows, i);
  }
}

void InFlightWork::deliver(std::size_t group, ItemKey key, const Rows& rows, std::size_t index) {
  if (!texts_.erase(key)) return;  // cancelled
  const auto row_size = std::size_t{rows.dim} * sizeof(float);
  parts_.events.on_row(key, rows.rows.subspan(index * row_size, row_size), group);
}

// Rows that are not finite go back and the good ones of the batch are kept.
void InFlightWork::on_some_not_finite(std::size_t group, DispatchBatch batch, const Rows& rows) {
  const auto row_size = std::size_t{rows.dim} * sizeof(float);
  const auto items = batch.work.items;
  std::vector<std::size_t> finite;
  std::vector<WorkItem> others;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (is_finite(rows.rows.subspan(i * row_size, row_size))) {
      finite.push_back(i);
    } else if (texts_.contains(items[i].key)) {  // not cancelled
      others.push_back(items[i]);
    }
  }
  if (others.empty()) {
    on_whole_batch(group, batch, rows);
  } else {
    batch.work.items = std::move(others);
    on_not_finite(group, std::move(batch));
  }
  groups_[group].text_count += finite.size();
  ++groups_[group].batch_count;
  for (const auto i : finite) deliver(group, items[i].key, rows, i);
}

// One batch teaches all who predict: the dispatcher's costs, the device's health, its restarts and
// its budget.
void InFlightWork::on_whole_batch(std::size_t index, const DispatchBatch& batch, const Rows& rows) {
  const Duration engine(rows.engine_ns);
  auto& group = groups_[index];
  auto& health = parts_.groups.health(index);
  const auto tokens = batch.work.token_count;
  dispatcher_.on_served(index, batch, engine);
  if (rows.is_cut) {
    health.speed.on_cut();
  } else {
    health.speed.on_served(batch.model, tokens, engine);
  }
  health.restarts.on_batch_served();
  group.blame.on_served();
  group.token_count += tokens;
  group.engine_seconds += seconds(engine) / parts_.groups.sent(index).lane_count();
  const bool may_have_more = group.lone_count > 0 && --group.lone_count == 0;
  if (group.budget.on_served(tokens) || may_have_more) update_group(index);
  blame_outdone(index, batch);
}

void InFlightWork::note_activation_peak(std::size_t group, std::uint64_t bytes) {
  auto& peak = groups_[group].activation_peak_bytes;
  peak = std::max(peak, bytes);
}

void InFlightWork::describe(std::size_t group, GroupStatus& status) const {
  const auto& here = groups_[group];
  status.text_count = here.text_count;
  status.token_count = here.token_count;
  status.batch_count = here.batch_count;
  status.failed_batch_count = here.failed_batch_count;
  status.engine_seconds = here.engine_seconds;
  status.activation_peak_bytes = here.activation_peak_bytes;
  status.token_budget = here.budget.now();
  for (const auto& [frame, batch] : here.batches) {
    status.in_flight_texts += batch.work.items.size();
    status.in_flight_tokens += batch.work.token_count;
  }
  if (here.engine_seconds > 0) {
    status.tokens_per_second = static_cast<double>(here.token_count) / here.engine_seconds;
  }
}

}  // namespace muster
