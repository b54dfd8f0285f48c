#pragma once

#include <cstdint>
#include <optional>

#include "fake_nvml/driver.h"

namespace muster::fake_nvml {

struct MemoryUse {
  std::uint64_t total = 0;
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;  // without what is reserved
};

/// What a GPU or a slice has of its memory now; nullopt where the driver does not tell (the machine
/// and the GPU share theirs, or the scenario says so).
std::optional<MemoryUse> memory_use(const Visit& visit);

/// Whether a process is there now, and on the device that is asked.
bool is_there(const FakeProcess& process, const Visit& visit);

}  // namespace muster::fake_nvml
