#pragma once

#include <cstddef>
#include <span>

namespace muster {

/// Fills `bytes`, at most 256 of them, with random bits of the kernel's, fit for keys.
///
/// Up to 256 bytes the kernel gives all of them once it has gathered entropy; until then it waits.
/// Source: getrandom(2). Threads: any.
void fill_random(std::span<std::byte> bytes);

}  // namespace muster
