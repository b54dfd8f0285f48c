// The part of the dispatcher that looks ahead: what a batch takes, when it ends, and when all is
// done.

#include <algorithm>

#include "scheduler/batch_ends.h"
#include "scheduler/dispatch_books.h"
#include "scheduler/dispatcher.h"

namespace muster {
namespace {

/// Raises the levels of `devices` to the time at which, taking from the emptiest on, they have done
/// `tokens` more: water is poured over steps.
void pour(const DispatchBooks& books, ModelId model, double tokens,
          std::vector<std::size_t> devices, std::vector<double>& levels) {
  std::sort(devices.begin(), devices.end(),
            [&](std::size_t left, std::size_t right) { return levels[left] < levels[right]; });
  double speed = 0;
  double level = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    speed += books.speed(devices[i], model);
    level = levels[devices[i]];
    const bool is_last = i + 1 == devices.size();
    const double until_next = is_last ? 0 : (levels[devices[i + 1]] - level) * speed;
    if (is_last || tokens <= until_next) break;
    tokens -= until_next;
  }
  level += tokens / speed;
  for (const auto i : devices) levels[i] = std::max(levels[i], level);
}

}  // namespace

std::optional<Duration> Dispatcher::predict(std::size_t device, ModelId model,
                                            std::uint64_t tokens) const {
  const auto& works = books_->at(device).works;
  const auto work = works.find(model);
  return work == works.end() ? std::nullopt : work->second.cost.predict(tokens);
}

std::optional<double> Dispatcher::tokens_per_second(ModelId model) const {
  return books_->tokens_per_second(model);
}

// When what a device is given now begins: at once in a free lane, else where the first lane ends.
TimePoint Dispatcher::begins_at(std::size_t device, TimePoint now) const {
  const auto& account = books_->at(device);
  if (account.in_flight_batches < account.lane_count()) return now;
  auto first = TimePoint::max();
  for (const auto& [id, given] : given_) {
    if (given.device == device) first = std::min(first, given.ends_at);
  }
  return std::max(now, first);
}

/// Of a bulk batch while queries come (batch_ends.h); the lanes of a device are as devices of their
/// own.
std::optional<std::uint64_t> Dispatcher::tokens_in_turn(std::size_t device, ModelId model,
                                                        TimePoint now) const {
  if (options_.batch_time_most == Duration::max()) return std::nullopt;
  const auto begin = begins_at(device, now);
  std::vector<Duration> ends;
  for (const auto& [id, given] : given_) {
    if (given.holds_queries_up) ends.push_back(given.ends_at - begin);
  }
  return tokens_within(time_among(options_.batch_time_most, ends), device, model);
}

// Each device first does what it has; what waits for any device goes to the emptiest that may take
// it. Models that fewer devices have come first, so that the others fill up around them.
std::optional<Duration> Dispatcher::predicted_drain() const {
  std::vector<double> levels(books_->size(), 0);
  bool is_known = false;
  for (std::size_t i = 0; i < books_->size(); ++i) {
    const auto& account = books_->at(i);
    for (const auto& [model, work] : account.works) {
      is_known |= work.cost.tokens_per_second().has_value();
    }
    if (account.state.is_eligible) levels[i] = books_->outstanding_seconds(i);
  }
  struct Waiting {
    ModelId model = 0;
    std::uint64_t tokens = 0;
    std::vector<std::size_t> devices;
  };
  std::vector<Waiting> all;
  for (const auto& [name, queues] : queues_) {
    if (queues.shared.token_count() == 0) continue;
    auto devices = books_->takers(name.second, options_.memory_threshold);
    if (!devices.empty()) {
      all.push_back({name.second, queues.shared.token_count(), std::move(devices)});
    }
  }
  if (!is_known) return std::nullopt;
  std::stable_sort(all.begin(), all.end(), [](const Waiting& left, const Waiting& right) {
    return left.devices.size() < right.devices.size();
  });
  for (auto& waiting : all) {
    pour(*books_, waiting.model, static_cast<double>(waiting.tokens), std::move(waiting.devices),
         levels);
  }
  const double longest = levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end());
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(longest));
}

}  // namespace muster
