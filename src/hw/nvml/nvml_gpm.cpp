// Two samples and the difference between them. The driver computes all metrics from a pair, and the
// newer sample becomes the older one only after that succeeded: a failed evaluation lengthens the
// next interval instead of losing one. Rates are turned into counters here, as everything else that
// flows is shown as a counter. A slice is sampled through its GPU and has no traffic of its own.

#include "hw/nvml/nvml_gpm.h"

#include <cmath>
#include <utility>

namespace muster {
namespace {

using enum Reading;

struct Metric {
  std::uint32_t id;
  Reading reading;
};

// NVML_GPM_METRIC_*, in percent.
constexpr std::array kShares{
    Metric{2, GpuSmActive},         Metric{3, GpuSmOccupancy},      Metric{5, GpuTensorActiveAny},
    Metric{6, GpuTensorActiveDfma}, Metric{7, GpuTensorActiveHmma}, Metric{9, GpuTensorActiveImma},
    Metric{10, GpuDramActive},      Metric{11, GpuPipeFp64Active},  Metric{12, GpuPipeFp32Active},
    Metric{13, GpuPipeFp16Active},  Metric{4, GpuPipeIntActive}};

// The same, in MiB/s.
constexpr std::array kTraffic{Metric{20, GpuPcieSent}, Metric{21, GpuPcieReceived},
                              Metric{61, GpuNvlinkSent}, Metric{60, GpuNvlinkReceived}};
constexpr std::size_t kPcieMetrics = 2;
constexpr double kMebibyte = 1048576.0;

// nvml.h: two samples shall be more than 100 ms apart.
constexpr Duration kIntervalMin = std::chrono::milliseconds(100);

}  // namespace

std::unique_ptr<NvmlGpm> NvmlGpm::open(std::shared_ptr<const NvmlLibrary> library,
                                       NvmlDevice device, std::optional<std::uint32_t> gpu_instance,
                                       NvmlCaller& call) {
  const auto& nvml = library->functions();
  const bool is_there = nvml.gpm_alloc && nvml.gpm_free && nvml.gpm_metrics &&
                        (gpu_instance ? bool{nvml.gpm_mig_sample} : bool{nvml.gpm_sample});
  NvmlGpmSupport support{kNvmlGpmVersion, 0};
  if (!is_there || call(nvml.gpm_support, device, &support) != kNvmlSuccess ||
      support.is_supported == 0) {
    return nullptr;
  }
  std::unique_ptr<NvmlGpm> gpm(new NvmlGpm(std::move(library), device, gpu_instance));
  for (auto& sample : gpm->samples_) {
    if (call(nvml.gpm_alloc, &sample) != kNvmlSuccess || sample == nullptr) return nullptr;
  }
  return gpm;
}

NvmlGpm::~NvmlGpm() {
  for (auto* sample : samples_) {
    if (sample != nullptr) library_->functions().gpm_free.address(sample);
  }
}

NvmlCode NvmlGpm::take_sample(NvmlVisit& visit, NvmlGpmSample sample) {
  const auto& nvml = visit.functions();
  return gpu_instance_ ? visit.call(nvml.gpm_mig_sample, device_, *gpu_instance_, sample)
                       : visit.call(nvml.gpm_sample, device_, sample);
}

// Of kTraffic. A slice has no traffic of its own.
std::size_t NvmlGpm::traffic_count() const {
  if (gpu_instance_) return 0;
  return counts_nvlink_ ? kTraffic.size() : kPcieMetrics;
}

void NvmlGpm::read(NvmlVisit& visit) {
  if (visit.is_lost() || (older_at_ && visit.at() - *older_at_ < kIntervalMin)) return;
  const auto code = take_sample(visit, samples_[1]);
  if (code != kNvmlSuccess) {
    for (const auto& metric : kShares) visit.accept(code, {metric.reading});
    for (std::size_t i = 0; i < traffic_count(); ++i) visit.accept(code, {kTraffic[i].reading});
    return;
  }
  if (!older_at_) {
    for (std::size_t i = 0; i < traffic_count(); ++i) visit.set(kTraffic[i].reading, bytes_[i]);
  }
  // What could not be worked out now is part of the next interval.
  if (older_at_ && !evaluate(visit, visit.at() - *older_at_)) return;
  std::swap(samples_[0], samples_[1]);
  older_at_ = visit.at();
}

bool NvmlGpm::evaluate(NvmlVisit& visit, Duration interval) {
  auto& get = *metrics_;
  get.version = kNvmlGpmVersion;
  get.count = static_cast<std::uint32_t>(kShares.size() + traffic_count());
  get.older = samples_[0];
  get.newer = samples_[1];
  for (std::size_t i = 0; i < get.count; ++i) {
    const auto& metric = i < kShares.size() ? kShares[i] : kTraffic[i - kShares.size()];
    get.metrics[i] = {metric.id, kNvmlUnknown, 0.0, {}};
  }
  const auto code = visit.call(visit.functions().gpm_metrics, &get);
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    const auto& metric = get.metrics[i];
    const auto failure = code != kNvmlSuccess ? code : metric.code;
    if (!visit.accept(failure, {kShares[i].reading})) continue;
    visit.set_percent(kShares[i].reading, metric.value);
  }
  for (std::size_t i = 0; i < traffic_count(); ++i) {
    const auto& metric = get.metrics[kShares.size() + i];
    const auto failure = code != kNvmlSuccess ? code : metric.code;
    if (!visit.accept(failure, {kTraffic[i].reading})) continue;
    if (!std::isfinite(metric.value) || metric.value < 0) {
      visit.accept(kNvmlUnknown, {kTraffic[i].reading});
      continue;
    }
    bytes_[i] += metric.value * kMebibyte * seconds(interval);
    visit.set(kTraffic[i].reading, bytes_[i]);
  }
  return code == kNvmlSuccess;
}

}  // namespace muster
