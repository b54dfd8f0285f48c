#pragma once

#include <cstddef>

/// Bytes of this program's heap, counted at every `new` as the allocator rounds them. One thread.

/// Begins to measure a peak; returns what lives now.
std::size_t start_heap_peak();

/// The most that lived at once since then.
std::size_t heap_peak();
