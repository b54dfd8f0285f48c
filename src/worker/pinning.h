#pragma once

#include <cstdint>
#include <span>

namespace muster {

/// Pins the calling thread; a CPU that is not ours to use leaves it where it is (the kernel
/// refuses), and so does an empty list.
void pin_to(std::span<const std::uint32_t> cpus);

}  // namespace muster
