#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/precision.h"
#include "spec/telemetry.h"

namespace muster {

/// What a device should give in a product of matrices, and how much of it is still well.
struct ExpectedSpeed {
  double flops_per_second = 0;
  double least_share = 0;
  std::string basis;  // "NVIDIA H200 Tensor Core GPU data sheet, 2024"
};

/// A GPU: the data sheet's dense 16-bit products. nullopt: the catalogue does not know the model,
/// or no figure for the precision. 40 %: large products come to 60 to 80 % on cards with room for
/// their power, and to about half on those of 70 W, whose clock falls.
std::optional<ExpectedSpeed> expected_gpu_speed(const std::string& model, Precision precision);

/// A CPU device in fp32: cores x frequency x the fewest operations a cycle that any processor with
/// these instruction sets does. Half of that floor is what neighbours on the other thread of a core
/// leave.
///
///   avx512f  32: two 256-bit or one 512-bit multiply-add unit
///   fma      16: two 128-bit units
///   else      8: an SSE multiplication and an addition of four each
///
/// Source: AMD, Software Optimization Guide for the AMD Zen4 Microarchitecture, 57647, 2.11 and Zen
/// family 17h, 55723, 2.11; Intel 64 and IA-32 Architectures Optimization Reference Manual 248966,
/// 2.5 and 15.
std::optional<ExpectedSpeed> expected_cpu_speed(std::size_t core_count, std::optional<double> hertz,
                                                const std::vector<std::string>& instruction_sets,
                                                Precision precision);

}  // namespace muster
