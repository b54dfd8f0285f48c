#include <algorithm>
#include <map>

#include "doctor/checks.h"
#include "telemetry/health.h"

namespace muster {

void merge_kernel_xids(DoctorFacts& facts) {
  if (!facts.system.kernel_xids) return;
  const double boot = facts.snapshot.unix_seconds - facts.system.seconds_since_boot;
  for (auto& status : facts.snapshot.devices) {
    const auto& address = status.identity.device.pci_address;
    if (!address || status.identity.parent) continue;
    std::map<std::uint32_t, XidCount> logged;
    for (const auto& xid : *facts.system.kernel_xids) {
      if (!is_same_pci_place(xid.pci_address, *address)) continue;
      auto& count = logged[xid.code];
      ++count.count;
      count.last_unix_seconds = std::max(count.last_unix_seconds, boot + xid.seconds_since_boot);
    }
    bool has_more = false;
    for (const auto& [code, count] : logged) {
      auto& known = status.xids[code];
      has_more |= count.count > known.count;
      known.count = std::max(known.count, count.count);
      known.last_unix_seconds = std::max(known.last_unix_seconds, count.last_unix_seconds);
    }
    if (has_more) status.health = judge(status, facts.snapshot.unix_seconds);
  }
}

}  // namespace muster
