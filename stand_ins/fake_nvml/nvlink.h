#pragma once

#include <cstdint>
#include <optional>

#include "fake_nvml/driver.h"

namespace muster::fake_nvml {

/// Whether a link carries data now: the scenario takes the last ones down first.
bool is_link_up(const Visit& visit, std::uint32_t link);

/// How many do.
std::uint32_t links_up(const Visit& visit);

/// The GPU at the other end of a link; nullopt: it leads to a switch.
std::optional<std::uint32_t> link_peer(const FakeGpu& gpu, std::uint32_t link);

}  // namespace muster::fake_nvml
