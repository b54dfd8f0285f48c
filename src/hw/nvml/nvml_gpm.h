#pragma once

#include <memory>
#include <optional>

#include "hw/nvml/nvml_visit.h"

namespace muster {

/// GPU performance monitoring: how much of the time multiprocessors, tensor cores and memory were
/// at work between two visits. It needs neither root nor a profiler's lock.
///
/// Units: ratios from 0 to 1; bytes for the counters, which start at 0 here and are mean rate times
/// interval summed up. Threads: not thread-safe; owned by one sampler. Source: nvml.h 13.3,
/// nvmlGpm*; Hopper and newer.
class NvmlGpm {
 public:
  /// gpu_instance: the MIG instance of `device` (the whole GPU), nullopt for all of it. nullptr:
  /// the device does not offer it.
  static std::unique_ptr<NvmlGpm> open(std::shared_ptr<const NvmlLibrary> library,
                                       NvmlDevice device, std::optional<std::uint32_t> gpu_instance,
                                       NvmlCaller& call);
  NvmlGpm(const NvmlGpm&) = delete;
  NvmlGpm& operator=(const NvmlGpm&) = delete;
  ~NvmlGpm();

  /// Sets the readings since the last visit. The first visit only takes a sample, and so does one
  /// less than 100 ms after it nothing at all: the driver's own counters are no fresher.
  void read(NvmlVisit& visit);

  /// Bytes over NVLink, for GPUs whose own counters are not offered.
  void count_nvlink() { counts_nvlink_ = true; }

 private:
  NvmlGpm(std::shared_ptr<const NvmlLibrary> library, NvmlDevice device,
          std::optional<std::uint32_t> gpu_instance)
      : library_(std::move(library)), device_(device), gpu_instance_(gpu_instance) {}

  std::size_t traffic_count() const;
  NvmlCode take_sample(NvmlVisit& visit, NvmlGpmSample sample);
  bool evaluate(NvmlVisit& visit, Duration interval);

  std::shared_ptr<const NvmlLibrary> library_;
  NvmlDevice device_;
  std::optional<std::uint32_t> gpu_instance_;
  std::array<NvmlGpmSample, 2> samples_{};
  std::optional<TimePoint> older_at_;  // when samples_[0] was taken
  std::unique_ptr<NvmlGpmMetrics> metrics_ = std::make_unique<NvmlGpmMetrics>();
  bool counts_nvlink_ = false;
  std::array<double, 4> bytes_{};  // of kTraffic
};

}  // namespace muster
