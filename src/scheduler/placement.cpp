// One function for each strategy; most choose the lowest cost among the devices that may take the
// text. Each text is placed against the books as the texts before it have left them, so a burst
// spreads out. A strategy that lacks its reading falls back to the least work instead of refusing,
// and every choice carries a reason for /v1/decisions. Ties go to the first device, so a run can be
// repeated.

#include "scheduler/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scheduler/placement_expression.h"

namespace muster {
namespace {

using Devices = std::vector<std::size_t>;

/// The device with the lowest cost, the first of equals.
template <typename Cost>
std::size_t lowest(const Devices& devices, const Cost& cost) {
  std::size_t best = devices.front();
  auto best_cost = cost(best);
  for (const auto device : devices) {
    const auto own = cost(device);
    if (own < best_cost) {
      best = device;
      best_cost = own;
    }
  }
  return best;
}

double work_with(const DispatchBooks& books, const DispatchItem& item, std::size_t device) {
  return books.outstanding_seconds(device) + item.token_count / books.speed(device, item.model);
}

Placement least_work(const DispatchBooks& books, const Devices& devices, const DispatchItem& item,
                     std::string_view what) {
  const auto device = lowest(
      devices, [&](std::size_t i) { return work_with(books, item, i) / books.at(i).state.weight; });
  return {device, fmt::format("{}: {:.3g} s with this text, of {} devices", what,
                              work_with(books, item, device), devices.size())};
}

// Each token that is outstanding reserves an equal part of what is free: between two readings of
// the memory, not everything goes to the device that was the emptiest in the last one.
Placement memory_usage(const DispatchBooks& books, const Devices& devices,
                       const DispatchItem& item) {
  Devices known;
  for (const auto i : devices) {
    if (books.at(i).state.memory_free_bytes) known.push_back(i);
  }
  if (known.empty()) return least_work(books, devices, item, "no memory is known; least work");
  const auto per_token = [&](std::size_t i) {
    const auto& state = books.at(i).state;
    return static_cast<double>(*state.memory_free_bytes) * state.weight /
           static_cast<double>(books.outstanding_tokens(i) + item.token_count);
  };
  const auto device = lowest(
      known, [&](std::size_t i) { return std::pair(-per_token(i), work_with(books, item, i)); });
  return {device,
          fmt::format("most unreserved memory: {} bytes free, {} tokens outstanding",
                      *books.at(device).state.memory_free_bytes, books.outstanding_tokens(device))};
}

Placement compute_load(const DispatchBooks& books, const Devices& devices) {
  const auto device = lowest(devices, [&](std::size_t i) {
    const auto& state = books.at(i).state;
    return std::pair(books.outstanding_seconds(i) / state.weight, state.utilization.value_or(0));
  });
  return {device, fmt::format("least load: {:.3g} s queued there, of {} devices",
                              books.outstanding_seconds(device), devices.size())};
}

Placement task_type(const DispatchOptions& options, const DispatchBooks& books,
                    const Devices& devices, const DispatchItem& item) {
  const auto& pool = options.pools.at(static_cast<std::size_t>(item.type));
  Devices own;
  for (const auto i : devices) {
    if (std::find(pool.begin(), pool.end(), i) != pool.end()) own.push_back(i);
  }
  const auto name = request_type_name(item.type);
  if (pool.empty()) return least_work(books, devices, item, fmt::format("{}: any device", name));
  if (own.empty()) return least_work(books, devices, item, fmt::format("{}: borrowed", name));
  return least_work(books, own, item, fmt::format("{}: its pool", name));
}

// SplitMix64: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"; the
// constants are those of its reference implementation.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Rendezvous hashing: each device has a score for the text, and the highest is its home; a device
/// that goes takes along only its own texts. With score = -w / ln(u), u uniform in (0, 1), a device
/// is home to a share of w of all texts.
///
/// Source: Thaler & Ravishankar 1998, "Using name-based mappings to increase hit rates"; the
/// weighted form: Schindelhauer & Schomaker 2005, "Weighted distributed hash tables".
double rendezvous_score(std::uint64_t affinity, std::size_t device, double weight) {
  const auto hash = mixed(mixed(affinity) ^ mixed(device + 1));
  const double uniform = (static_cast<double>(hash >> 11) + 0.5) * 0x1p-53;
  return -weight / std::log(uniform);
}

// Bounded load: a device may hold its share of all outstanding tokens times the bound, counted in
// texts as long as this one and rounded up, so that an idle device is never full.
Placement static_partition(const DispatchOptions& options, const DispatchBooks& books,
                           Devices devices, const DispatchItem& item) {
  double weights = 0;
  double outstanding = 0;
  const auto weight = [&](std::size_t i) { return books.weighted_speed(i, item.model); };
  for (const auto i : devices) {
    weights += weight(i);
    outstanding += static_cast<double>(books.outstanding_tokens(i));
  }
  std::stable_sort(devices.begin(), devices.end(), [&](std::size_t left, std::size_t right) {
    return rendezvous_score(item.affinity, left, weight(left)) >
           rendezvous_score(item.affinity, right, weight(right));
  });
  const double length = std::max<std::uint32_t>(1, item.token_count);
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const auto i = devices[rank];
    const auto own = static_cast<double>(books.outstanding_tokens(i));
    const double most = length * std::ceil(options.load_bound * (outstanding + length) * weight(i) /
                                           weights / length);
    if (own + length <= most) {
      return {i, rank == 0 ? std::string("its home by hash")
                           : fmt::format("by hash, {} fuller devices passed over", rank)};
    }
  }
  return least_work(books, devices, item, "all homes are full; least work");
}

/// The values of a device in the order of PlacementExpression::names().
std::array<std::optional<double>, kPlacementNameCount> values_of(const DispatchBooks& books,
                                                                 std::size_t device,
                                                                 const DispatchItem& item) {
  const auto& account = books.at(device);
  const auto& state = account.state;
  const auto number = [](const auto& value) -> std::optional<double> {
    if (!value) return std::nullopt;
    return static_cast<double>(*value);
  };
  const auto free_slots = state.slot_count - std::min(state.slot_count, account.in_flight_batches);
  return {books.outstanding_seconds(device),
          static_cast<double>(books.outstanding_tokens(device)),
          books.bound_seconds(device),
          static_cast<double>(books.bound_tokens(device)),
          static_cast<double>(books.in_flight_tokens(device)),
          static_cast<double>(account.in_flight_batches),
          static_cast<double>(free_slots),
          books.measured_speed(device, item.model),
          number(state.memory_free_bytes),
          number(state.memory_total_bytes),
          books.memory_used_share(device),
          state.utilization,
          state.temperature_celsius,
          state.power_watts,
          state.weight,
          static_cast<double>(device),
          static_cast<double>(item.token_count),
          item.token_count / books.speed(device, item.model)};
}

Placement expression(const DispatchOptions& options, const DispatchBooks& books,
                     const Devices& devices, const DispatchItem& item) {
  Devices known;
  std::vector<double> costs(books.size());
  for (const auto i : devices) {
    if (!options.expression) break;
    if (const auto value = options.expression->evaluate(values_of(books, i, item))) {
      known.push_back(i);
      costs[i] = *value;
    }
  }
  if (known.empty()) {
    return least_work(books, devices, item, "the expression has no value; least work");
  }
  const auto device =
      lowest(known, [&](std::size_t i) { return std::pair(costs[i], work_with(books, item, i)); });
  return {device,
          fmt::format("the expression is {:.6g}, the lowest of {}", costs[device], known.size())};
}

}  // namespace

std::optional<Placement> Placer::place(const DispatchOptions& options, const DispatchBooks& books,
                                       const DispatchItem& item) {
  if (options.strategy == Strategy::Auto) return std::nullopt;
  auto devices = books.takers(item.model, options.memory_threshold);
  if (devices.empty()) return std::nullopt;
  switch (options.strategy) {
    case Strategy::Auto:
      break;
    case Strategy::LeastWork:
      return least_work(books, devices, item, "least work");
    case Strategy::RoundRobin:
      return round_robin(books, devices);
    case Strategy::MemoryUsage:
      return memory_usage(books, devices, item);
    case Strategy::ComputeLoad:
      return compute_load(books, devices);
    case Strategy::TaskType:
      return task_type(options, books, devices, item);
    case Strategy::StaticPartition:
      return static_partition(options, books, std::move(devices), item);
    case Strategy::Expression:
      return expression(options, books, devices, item);
  }
  return std::nullopt;
}

// Deficit round robin: at each visit a device saves weight / the largest weight of a turn, and
// takes the text when it has a whole one. Equal weights: everyone takes at each visit. Source:
// Shreedhar & Varghese 1996, "Efficient fair queuing using deficit round-robin".
Placement Placer::round_robin(const DispatchBooks& books, const Devices& devices) {
  double heaviest = 0;
  for (const auto i : devices) heaviest = std::max(heaviest, books.at(i).state.weight);
  for (;;) {  // ends at the heaviest device at the latest
    const auto device = next_in_turn_;
    next_in_turn_ = (next_in_turn_ + 1) % books.size();
    if (!std::binary_search(devices.begin(), devices.end(), device)) continue;
    credits_[device] += books.at(device).state.weight / heaviest;
    if (credits_[device] < 1) continue;
    credits_[device] = std::min(credits_[device] - 1, 1.0);
    return {device, fmt::format("its turn, of {} devices", devices.size())};
  }
}

}  // namespace muster
