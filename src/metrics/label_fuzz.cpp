#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "metrics/exposition.h"
#include "metrics/snapshot_fixture.h"
#include "metrics/strict_text.h"

// Whatever a process calls itself: the text can be read, and no series comes or goes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  muster::TelemetrySnapshot snapshot;
  snapshot.devices = {muster::gpu_status(0, "GPU-0")};
  snapshot.devices[0].processes = {{1, "plain", 1, muster::GpuProcessKind::Compute}};
  const auto plain =
      muster::read_strictly(muster::prometheus_text(snapshot, muster::MetricSet::Dcgm));
  snapshot.devices[0].processes[0].command = name;
  const auto named =
      muster::read_strictly(muster::prometheus_text(snapshot, muster::MetricSet::Dcgm));
  MUSTER_CHECK(named.fault.empty());
  MUSTER_CHECK(named.series.size() == plain.series.size());
  return 0;
}
