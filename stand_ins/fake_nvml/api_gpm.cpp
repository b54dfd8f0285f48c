#include <array>
#include <memory>
#include <mutex>
#include <set>

#include "fake_nvml/driver.h"

namespace muster::fake_nvml {

/// What one look of GPM keeps: when it was, and of what.
struct GpmSampleState {
  std::uint32_t gpu = 0;
  const MigSlice* slice = nullptr;
  std::int64_t at_ns = 0;
  bool is_taken = false;
};

namespace {

constexpr std::uint32_t kVersion = 1;  // NVML_GPM_METRICS_GET_VERSION, NVML_GPM_SUPPORT_VERSION
// "The interval between these two calls should be greater than 100ms" (nvml.h 13.3): closer ones
// have nothing between them here.
constexpr std::int64_t kRefreshNs = 100'000'000;
constexpr double kMebi = 1024.0 * 1024.0;

/// The samples that are allocated, so that a wrong handle is refused.
struct Samples {
  std::mutex mutex;
  std::set<GpmSampleState*> live;
};

Samples& samples() {
  static Samples all;
  return all;
}

bool is_live(GpmSampleHandle sample) {
  const std::lock_guard lock(samples().mutex);
  return samples().live.contains(sample);
}

bool has_gpm(const Visit& visit) {
  return visit.spec().model->architecture >= Architecture::Hopper &&
         visit.driver.scenario().generation >= 520;
}

int take(const Visit& visit, GpmSampleHandle sample, const MigSlice* slice) {
  if (!is_live(sample)) return kInvalidArgument;
  if (!has_gpm(visit)) return kNotSupported;
  *sample = {visit.handle.gpu, slice, visit.now_ns, true};
  return kSuccess;
}

struct MetricActivity {
  std::uint32_t metric;
  Activity activity;
};
// Source: nvml.h 13.3, nvmlGpmMetricId_t.
constexpr std::array kMetrics{
    MetricActivity{2, Activity::Sm},    MetricActivity{3, Activity::Occupancy},
    MetricActivity{4, Activity::Int},   MetricActivity{5, Activity::Tensor},
    MetricActivity{6, Activity::Dfma},  MetricActivity{7, Activity::Hmma},
    MetricActivity{8, Activity::Dmma},  MetricActivity{9, Activity::Imma},
    MetricActivity{10, Activity::Dram}, MetricActivity{11, Activity::Fp64},
    MetricActivity{12, Activity::Fp32}, MetricActivity{13, Activity::Fp16}};

/// Percent, or MiB a second for traffic; `load` is the mean between the two looks.
std::optional<double> metric_value(const FakeGpu& gpu, std::uint32_t metric, double load) {
  for (const auto& row : kMetrics) {
    if (row.metric == metric) {
      return 100 * load * gpu.activity[static_cast<std::size_t>(row.activity)];
    }
  }
  if (metric == 1) return 100 * load;
  if (metric == 20) return load * gpu.traffic.pcie_sent / kMebi;
  if (metric == 21) return load * gpu.traffic.pcie_received / kMebi;
  if (gpu.nvlink_count > 0 && metric == 60) return load * gpu.traffic.nvlink_received / kMebi;
  if (gpu.nvlink_count > 0 && metric == 61) return load * gpu.traffic.nvlink_sent / kMebi;
  return std::nullopt;
}

int fill_metrics(Driver& driver, GpmMetricsGet& request) {
  const auto& first = *request.sample1;
  const auto& second = *request.sample2;
  if (!first.is_taken || !second.is_taken || first.gpu != second.gpu ||
      first.slice != second.slice || second.at_ns - first.at_ns < kRefreshNs) {
    return kInvalidArgument;
  }
  const auto& gpu = driver.gpu(first.gpu).spec;
  const auto& curve = first.slice != nullptr && first.slice->load ? *first.slice->load : gpu.load;
  const double load = curve.mean(seconds(first.at_ns), seconds(second.at_ns));
  for (std::uint32_t i = 0; i < request.metric_count; ++i) {
    auto& metric = request.metrics[i];
    const auto value = metric_value(gpu, metric.metric, load);
    metric.code = value ? kSuccess : kNotSupported;
    metric.value = value.value_or(0);
    metric.short_name = nullptr;
    metric.long_name = nullptr;
    metric.unit = nullptr;
  }
  return kSuccess;
}

}  // namespace

FAKENVML_EXPORT int nvmlGpmQueryDeviceSupport(DeviceHandle device, GpmSupport* support) {
  return answer(Function::nvmlGpmQueryDeviceSupport, device, [&](const Visit& visit) -> int {
    if (support == nullptr) return kInvalidArgument;
    if (support->version != kVersion) return kArgumentVersionMismatch;
    support->is_supported = has_gpm(visit);
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlGpmSampleAlloc(GpmSampleHandle* sample) {
  return answer_system(Function::nvmlGpmSampleAlloc, [&](Driver&) -> int {
    if (sample == nullptr) return kInvalidArgument;
    auto owned = std::make_unique<GpmSampleState>();
    const std::lock_guard lock(samples().mutex);
    samples().live.insert(owned.get());
    *sample = owned.release();
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlGpmSampleFree(GpmSampleHandle sample) {
  return answer_system(Function::nvmlGpmSampleFree, [&](Driver&) -> int {
    const std::lock_guard lock(samples().mutex);
    if (samples().live.erase(sample) == 0) return kInvalidArgument;
    const std::unique_ptr<GpmSampleState> owned(sample);
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlGpmSampleGet(DeviceHandle device, GpmSampleHandle sample) {
  return answer(Function::nvmlGpmSampleGet, device,
                [&](const Visit& visit) { return take(visit, sample, visit.slice()); });
}

FAKENVML_EXPORT int nvmlGpmMigSampleGet(DeviceHandle device, unsigned instance,
                                        GpmSampleHandle sample) {
  return answer_gpu(Function::nvmlGpmMigSampleGet, device, [&](const Visit& visit) -> int {
    if (!visit.spec().mig) return kNotSupported;
    for (const auto& slice : *visit.spec().mig) {
      if (slice.gpu_instance == instance) return take(visit, sample, &slice);
    }
    return kInvalidArgument;
  });
}

FAKENVML_EXPORT int nvmlGpmMetricsGet(GpmMetricsGet* request) {
  return answer_system(Function::nvmlGpmMetricsGet, [&](Driver& driver) -> int {
    if (request == nullptr || request->metric_count > kGpmMetricsMax) return kInvalidArgument;
    if (request->version != kVersion) return kArgumentVersionMismatch;
    if (!is_live(request->sample1) || !is_live(request->sample2)) return kInvalidArgument;
    return fill_metrics(driver, *request);
  });
}

}  // namespace muster::fake_nvml
