// Plain accounts for each device: what is bound to it, what is in flight and what it costs.
// Strategies read them and only the dispatcher writes. A speed that was not measured is guessed
// from other devices with the same model, then from any work at all: only the ratio between devices
// matters for a choice. Time is the sum over models, since each has its own speed.

#include "scheduler/dispatch_books.h"

#include <algorithm>

namespace muster {
namespace {

/// The mean of what is added.
class Mean {
 public:
  void add(std::optional<double> value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
  }
  std::optional<double> value() const {
    if (count_ == 0) return std::nullopt;
    return sum_ / static_cast<double>(count_);
  }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

void DispatchBooks::forget(ModelId model) {
  for (auto& account : accounts_) account.works.erase(model);
}

bool DispatchBooks::is_eligible(std::size_t device, ModelId model) const {
  const auto& state = accounts_.at(device).state;
  return state.is_eligible && state.slot_count > 0 &&
         std::find(state.models.begin(), state.models.end(), model) != state.models.end();
}

std::vector<std::size_t> DispatchBooks::eligible(ModelId model) const {
  std::vector<std::size_t> devices;
  devices.reserve(accounts_.size());
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    if (is_eligible(i, model)) devices.push_back(i);
  }
  return devices;
}

// When all are above the threshold it is ignored: refusing every device would leave the texts
// waiting for ever.
std::vector<std::size_t> DispatchBooks::takers(ModelId model, double threshold) const {
  auto takers = eligible(model);
  const auto is_full = [&](std::size_t i) { return memory_used_share(i).value_or(0) > threshold; };
  if (!std::all_of(takers.begin(), takers.end(), is_full)) std::erase_if(takers, is_full);
  return takers;
}

std::uint64_t DispatchBooks::bound_tokens(std::size_t device) const {
  std::uint64_t sum = 0;
  for (const auto& [model, work] : accounts_.at(device).works) sum += work.bound_tokens;
  return sum;
}

std::uint64_t DispatchBooks::in_flight_tokens(std::size_t device) const {
  std::uint64_t sum = 0;
  for (const auto& [model, work] : accounts_.at(device).works) sum += work.in_flight_tokens;
  return sum;
}

std::uint64_t DispatchBooks::outstanding_tokens(std::size_t device) const {
  return bound_tokens(device) + in_flight_tokens(device);
}

std::optional<double> DispatchBooks::measured_speed(std::size_t device, ModelId model) const {
  const auto& account = accounts_.at(device);
  const auto work = account.works.find(model);
  if (work == account.works.end()) return std::nullopt;
  const auto of_lane = work->second.cost.tokens_per_second();
  if (!of_lane) return std::nullopt;
  return *of_lane * static_cast<double>(account.lane_count());
}

double DispatchBooks::speed(std::size_t device, ModelId model) const {
  if (const auto own = measured_speed(device, model)) return *own;
  Mean of_model;
  for (std::size_t i = 0; i < accounts_.size(); ++i) of_model.add(measured_speed(i, model));
  if (const auto mean = of_model.value()) return *mean;
  Mean of_all;
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    for (const auto& [other, work] : accounts_[i].works) of_all.add(measured_speed(i, other));
  }
  return of_all.value().value_or(1);
}

double DispatchBooks::bound_seconds(std::size_t device) const {
  double sum = 0;
  for (const auto& [model, work] : accounts_.at(device).works) {
    if (work.bound_tokens > 0) {
      sum += static_cast<double>(work.bound_tokens) / speed(device, model);
    }
  }
  return sum;
}

double DispatchBooks::outstanding_seconds(std::size_t device) const {
  double sum = 0;
  for (const auto& [model, work] : accounts_.at(device).works) {
    const auto tokens = work.bound_tokens + work.in_flight_tokens;
    if (tokens > 0) sum += static_cast<double>(tokens) / speed(device, model);
  }
  return sum;
}

std::optional<double> DispatchBooks::tokens_per_second(ModelId model) const {
  const auto devices = eligible(model);
  bool is_known = false;  // also by a device that may not work now: the others are like it
  for (std::size_t i = 0; i < accounts_.size(); ++i)
    is_known |= measured_speed(i, model).has_value();
  if (devices.empty() || !is_known) return std::nullopt;
  double sum = 0;
  for (const auto i : devices) sum += speed(i, model);
  return sum;
}

std::optional<double> DispatchBooks::memory_used_share(std::size_t device) const {
  const auto& state = accounts_.at(device).state;
  if (!state.memory_total_bytes || !state.memory_free_bytes || *state.memory_total_bytes == 0) {
    return std::nullopt;
  }
  return 1 - static_cast<double>(*state.memory_free_bytes) /
                 static_cast<double>(*state.memory_total_bytes);
}

}  // namespace muster
