#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "coordinator/device_blame.h"
#include "coordinator/fleet_rules.h"
#include "coordinator/restart_policy.h"
#include "coordinator/silence.h"
#include "scheduler/admission.h"
#include "scheduler/dispatcher.h"
#include "simulator/simulation.h"

namespace muster {

/// The events of a simulation, one after the other; see `simulate`.
///
/// Threads: owned by one.
class SimulatedFleet {
 public:
  explicit SimulatedFleet(const SimulationInput& input);

  SimulationResult run();

 private:
  enum class EventKind : std::uint8_t {
    Arrival,
    Leaving,
    Served,
    Death,
    Fault,
    Recovery,
    Ready,
    Check
  };

  struct Event {
    TimePoint at;
    std::uint64_t order = 0;  // among events of one time: as they were made
    EventKind kind = EventKind::Arrival;
    std::size_t subject = 0;  // a text, a fault or a device
    std::uint64_t life = 0;   // of the device: an event of an earlier life means nothing
    std::uint64_t batch = 0;  // Served, Death
  };
  struct Later {
    bool operator()(const Event& left, const Event& right) const {
      return left.at != right.at ? left.at > right.at : left.order > right.order;
    }
  };

  enum class Fate : std::uint8_t { Coming, Waiting, Given, Answered, Failed, Refused, Cancelled };

  struct Text {
    Fate fate = Fate::Coming;
    std::uint32_t death_count = 0;  // of workers that ran it, or that failed at it
    std::uint32_t fault_count = 0;  // workers that failed at it
    std::pair<std::size_t, std::uint64_t> failed_in{};  // the last one: device, life
  };

  struct Flight {
    DispatchBatch batch;
    std::optional<TimePoint> running_since{};
    Duration duration{};
  };

  struct Device {
    bool is_ready = true;
    bool hangs = false;
    bool fails = false;
    bool fails_canaries = false;
    double slowness = 1;
    std::uint64_t life = 0;
    std::deque<Flight> flights;         // oldest first: one for each lane is running
    std::optional<TimePoint> check_at;  // the next Check event
    DeviceBlame blame;
    RestartPolicy restarts{/*gives_up=*/false};
  };

  void handle(const Event& event);
  void on_arrival(std::size_t text);
  void on_leaving(std::size_t text);
  void on_served(std::size_t device, std::uint64_t batch);
  void on_batch_failed(std::size_t device, Flight flight);
  void return_failed(std::size_t device, DispatchBatch batch);
  void give_back(std::size_t device, DispatchBatch batch);
  void try_elsewhere(std::size_t device, DispatchBatch batch);
  void on_death(std::size_t device, WorkerEnd end, bool is_at_fault = false);
  bool has_peer(std::size_t device, ModelId model) const;
  void wait_again(const std::vector<WorkItem>& items);
  void on_fault(const SimulatedFault& fault);
  void on_check(std::size_t device);
  void plan_check(std::size_t device);
  void feed();
  void start_batches(std::size_t device);
  void tell(std::size_t device);
  std::optional<Silence> silence(std::size_t device) const;
  Duration cost_of(std::size_t device, const DispatchBatch& batch) const;
  bool kills(const DispatchBatch& batch) const;
  void settle_strike(std::size_t device, DispatchBatch batch);
  void end_text(std::size_t text, Fate fate);
  void drop_cancelled(DispatchBatch& batch);
  void check_batch(std::size_t device, const DispatchBatch& batch);
  void check_books();
  void at(TimePoint time, EventKind kind, std::size_t subject, std::uint64_t batch = 0);
  void violated(std::string what);

  const SimulationInput& input_;
  Dispatcher dispatcher_;
  std::optional<Admission> admission_;
  std::vector<Device> devices_;
  std::vector<Text> texts_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  TimePoint now_{};
  std::uint64_t next_order_ = 0;
  std::uint64_t waiting_texts_ = 0;
  std::uint64_t waiting_tokens_ = 0;
  std::uint64_t open_count_ = 0;  // texts whose fate is not decided
  bool has_bad_workers_ = false;  // some die, or stop answering in time, without a text's doing
  SimulationResult result_;
};

}  // namespace muster
