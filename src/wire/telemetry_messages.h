#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "spec/telemetry.h"

namespace muster {

/// What a collector and its sampler say to each other; the numbers go on from MessageType's with a
/// gap, so that no frame of a worker is taken for one of these. The collector says Watch; the
/// sampler answers Machine, or Refused and ends; then it sends Samples, Events and Costs on its
/// own, and Edges for each FindEdges. Samples has no payload: it tells that there are some in the
/// memory that both share. The end of the stream is the end of the sampler.
/// Source: docs/formats/frames.md.
enum class TelemetryMessageType : std::uint8_t {
  Watch = 32,
  FindEdges = 33,
  Viewer = 34,
  Machine = 48,
  Samples = 49,
  Events = 50,
  Edges = 51,
  Costs = 52,
  Refused = 53,  // the payload is that of Failed
};

/// Collector: what to watch, and how often.
struct Watch {
  std::vector<std::string> nvml_libraries;  // empty: the system's
  std::string root = "/";                   // in front of /proc and /sys
  std::optional<std::string> simulated;     // nothing of here, but this machine
  std::array<Duration, kTierCount> periods{};
  std::vector<std::string> left_out;  // device keys: in their calls a sampler died twice
};

/// Collector: visit the CPUs now, whose samples come before the answer, and find the next edge of
/// every energy counter; the frame's id comes back with Edges.
struct FindEdges {
  Duration limit{};
};

/// Collector: somebody is looking at the processes, or nobody is any more.
struct Viewer {
  bool is_there = false;
};

/// Sampler: one answer to FindEdges for a device.
struct EdgeFound {
  std::uint32_t device = 0;
  std::optional<TimePoint> at;  // nullopt: the counter is missing or stood still
  double joules = 0;
  Duration within{};  // the edge is at most so far from `at`
  std::string missing_reason;
};

/// Sampler: what watching has cost since it started; each five seconds.
struct SamplerCosts {
  std::array<CollectorStatus::TierTicks, kTierCount> ticks{};
  std::vector<CallCost> calls;
  double cpu_seconds = 0;  // user + system
  std::uint64_t rss_bytes = 0;
};

std::vector<std::byte> encode(const Watch& message);
std::vector<std::byte> encode(const FindEdges& message);
std::vector<std::byte> encode(const Viewer& message);
std::vector<std::byte> encode(const WatchedMachine& message);
/// A record of the memory that sampler and collector share. The memory of `buffer` is used again.
std::vector<std::byte> encode(std::span<const DeviceSample> samples,
                              std::vector<std::byte> buffer = {});
std::vector<std::byte> encode(std::span<const DeviceEvent> events);
std::vector<std::byte> encode(std::span<const EdgeFound> edges);
std::vector<std::byte> encode(const SamplerCosts& message);

/// Errors of all: Corrupt for a payload that ends early or late, an unknown enumerator, a reading
/// twice or out of order, or a number that is not finite.
Result<Watch> decode_watch(std::span<const std::byte> payload);
Result<FindEdges> decode_find_edges(std::span<const std::byte> payload);
Result<Viewer> decode_viewer(std::span<const std::byte> payload);
Result<WatchedMachine> decode_machine(std::span<const std::byte> payload);
Result<std::vector<DeviceSample>> decode_samples(std::span<const std::byte> payload);
Result<std::vector<DeviceEvent>> decode_events(std::span<const std::byte> payload);
Result<std::vector<EdgeFound>> decode_edges(std::span<const std::byte> payload);
Result<SamplerCosts> decode_costs(std::span<const std::byte> payload);

}  // namespace muster
