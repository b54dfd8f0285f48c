#include "fake_nvml/memory_use.h"

#include <algorithm>

namespace muster::fake_nvml {

bool is_there(const FakeProcess& process, const Visit& visit) {
  if (!process.span.covers(seconds(visit.now_ns))) return false;
  const auto* slice = visit.slice();
  return slice == nullptr || (process.gpu_instance == slice->gpu_instance &&
                              process.compute_instance == slice->compute_instance);
}

std::optional<MemoryUse> memory_use(const Visit& visit) {
  const auto& gpu = visit.spec();
  if (gpu.shares_host_memory) return std::nullopt;
  const auto* slice = visit.slice();
  MemoryUse use;
  use.total = slice != nullptr ? slice->memory_bytes : gpu.memory_bytes;
  use.reserved = slice != nullptr ? 0 : gpu.memory_reserved_bytes;
  std::uint64_t held = 0;
  for (const auto& process : gpu.processes) {
    if (is_there(process, visit)) held += process.memory_bytes.value_or(0);
  }
  auto used = static_cast<double>(held);
  if (slice == nullptr) {
    const auto scripted = visit.gpu.sensor.value(ValueId::MemoryUsed, visit.now_ns, used);
    if (!scripted) return std::nullopt;
    used = *scripted;
  }
  use.used = std::min(static_cast<std::uint64_t>(used), use.total - use.reserved);
  return use;
}

}  // namespace muster::fake_nvml
