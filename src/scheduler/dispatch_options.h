#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "scheduler/batch_queue.h"
#include "scheduler/fair_order.h"
#include "scheduler/placement_expression.h"
#include "spec/serving.h"

namespace muster {

/// How a text finds its device. `Auto` binds late: whoever has a free slot takes the next batch.
/// The others bind a text when it comes, and bind it again only if that device stops being
/// eligible.
enum class Strategy : std::uint8_t {
  Auto,
  LeastWork,        // the least outstanding predicted seconds, this text's included
  RoundRobin,       // the next eligible device in order; a change of devices never starts it again
  MemoryUsage,      // the most unreserved memory; not eligible above `memory_threshold`
  ComputeLoad,      // the least expected seconds of work queued there; utilisation breaks ties
  TaskType,         // the pool of the request's type, by least work inside it
  StaticPartition,  // rendezvous hashing of the text over devices weighted by speed, bounded load
  Expression,       // the lowest value of the user's expression
};

/// "auto", "least_work", "round_robin", "memory_usage", "compute_load", "task_type",
/// "static_partition", "expression".
std::string_view strategy_name(Strategy strategy);

struct DispatchOptions {
  Strategy strategy = Strategy::Auto;
  double memory_threshold = 0.8;  // share of a device's memory in use above which MemoryUsage and
                                  // every other strategy place nothing on it, unless all are above
  double load_bound = 1.25;       // StaticPartition: of the mean load, before the next device is
                                  // taken. Source: Mirrokni et al. 2018, consistent hashing with
                                  // bounded loads.
  std::array<std::vector<std::size_t>, kRequestTypeCount> pools{};  // TaskType; empty: all devices
  std::shared_ptr<const PlacementExpression> expression{};          // Strategy::Expression
  Duration batch_time_most = std::chrono::milliseconds(100);  // predicted time of a batch of bulk
                                                              // texts, so that a query can come in;
                                                              // Duration::max(): no bound
};

/// A device as the dispatcher knows it. The owner tells each change.
struct DispatchDevice {
  bool is_eligible = false;        // ready, not draining, not quarantined
  std::uint64_t slot_count = 0;    // batches it takes at a time: two a lane
  std::uint64_t token_budget = 0;  // upper bound of a batch
  double weight = 1;               // the user's: more is given more; > 0
  std::vector<ModelId> models{};   // loaded there
  std::vector<ModelId> coming{};  // its first start is not over: a suspect waits for another device
  std::optional<std::uint64_t> memory_total_bytes{};
  std::optional<std::uint64_t> memory_free_bytes{};
  std::optional<double> utilization{};  // 0 to 1
  std::optional<double> temperature_celsius{};
  std::optional<double> power_watts{};
};

/// One text as it is placed.
struct DispatchItem {
  ItemKey key = 0;  // older texts have lower keys
  ModelId model = 0;
  std::uint32_t token_count = 0;
  Lane lane = Lane::Bulk;
  RequestType type = RequestType::Document;
  std::uint64_t affinity = 0;  // StaticPartition: a hash of the text
  FlowId flow = 0;             // whose share of its lane it takes
};

}  // namespace muster
