#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "fake_nvml/functions.h"

namespace muster::fake_nvml {

/// Calls by function, as they lie in a statistics file, so that another process can read them.
/// Format: docs/formats/fake-nvml.md.
struct Statistics {
  static constexpr std::array<char, 8> kMagic{'F', 'A', 'K', 'E', 'N', 'V', 'M', 'L'};
  struct Row {
    std::array<char, 56> function;  // its name, filled up with zeros
    std::atomic<std::uint64_t> calls;
  };
  std::array<char, 8> magic;
  std::uint32_t version;  // 1
  std::uint32_t row_count;
  std::array<Row, kFunctionCount> rows;
};
static_assert(sizeof(Statistics::Row) == 64);
static_assert(sizeof(Statistics) == 16 + 64 * kFunctionCount);

}  // namespace muster::fake_nvml
