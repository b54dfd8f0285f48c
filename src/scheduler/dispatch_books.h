#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "scheduler/cost_model.h"
#include "scheduler/dispatch_options.h"
#include "spec/serving.h"

namespace muster {

/// What each device has, and what its work costs there: the figures that placing looks at.
/// Outstanding is what is bound to a device or with it.
///
/// Pure. Threads: owned by one loop.
class DispatchBooks {
 public:
  explicit DispatchBooks(std::size_t device_count) : accounts_(device_count) {}

  struct Work {
    std::uint64_t bound_tokens = 0;
    std::uint64_t in_flight_tokens = 0;
    CostModel cost;
  };
  struct Account {
    DispatchDevice state;
    std::map<ModelId, Work> works;
    std::uint64_t in_flight_batches = 0;
    std::uint64_t in_flight_suspects = 0;
    std::uint64_t in_flight_long = 0;  // batches that are predicted to take long
    std::uint64_t in_flight_slow = 0;  // bulk batches that a query should not wait behind

    /// Two slots a lane: one batch runs, one waits.
    std::uint64_t lane_count() const { return state.slot_count < 2 ? 1 : state.slot_count / 2; }
  };

  std::size_t size() const { return accounts_.size(); }
  Account& at(std::size_t device) { return accounts_.at(device); }
  const Account& at(std::size_t device) const { return accounts_.at(device); }
  Work& work(std::size_t device, ModelId model) { return accounts_.at(device).works[model]; }

  /// Removes what is known of a model.
  void forget(ModelId model);

  bool is_eligible(std::size_t device, ModelId model) const;
  std::vector<std::size_t> eligible(ModelId model) const;

  /// The eligible devices that take what is new: those whose memory is in use beyond `threshold`
  /// only when all are. In order.
  std::vector<std::size_t> takers(ModelId model, double threshold) const;

  std::uint64_t bound_tokens(std::size_t device) const;
  std::uint64_t in_flight_tokens(std::size_t device) const;
  std::uint64_t outstanding_tokens(std::size_t device) const;

  /// Tokens a second of all lanes of a device for a model, as measured; nullopt before its first
  /// batch.
  std::optional<double> measured_speed(std::size_t device, ModelId model) const;

  /// The measured speed, else the model's mean over all devices, else the mean of all that was
  /// measured, else 1: with nothing known, all devices are equal.
  double speed(std::size_t device, ModelId model) const;

  /// The speed times the user's weight: what a device's part of the work goes by.
  double weighted_speed(std::size_t device, ModelId model) const {
    return speed(device, model) * at(device).state.weight;
  }

  /// Predicted seconds of what is bound to the device and waits.
  double bound_seconds(std::size_t device) const;

  /// Predicted seconds until the device has done what is outstanding there.
  double outstanding_seconds(std::size_t device) const;

  /// As Dispatcher::tokens_per_second.
  std::optional<double> tokens_per_second(ModelId model) const;

  /// Share of the device's memory that is in use; nullopt when not known.
  std::optional<double> memory_used_share(std::size_t device) const;

 private:
  std::vector<Account> accounts_;
};

}  // namespace muster
