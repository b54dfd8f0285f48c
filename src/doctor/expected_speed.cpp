// Floors, not forecasts: a device above them may still be slow, but one below them is surely not
// well. For a CPU the figure is the least that any processor with an instruction set does, for a
// GPU that of its data sheet, and the share asked for leaves room for clocks that fall under
// load. Only precisions that have such a figure are judged.

#include "doctor/expected_speed.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/gpu_catalogue.h"

namespace muster {

std::optional<ExpectedSpeed> expected_gpu_speed(const std::string& model, Precision precision) {
  constexpr double kLeastShare = 0.4;
  const auto* facts = find_gpu_by_driver_name(model);
  if (facts == nullptr || !facts->flops_per_second || precision == Precision::Fp32) {
    return std::nullopt;
  }
  return ExpectedSpeed{.flops_per_second = *facts->flops_per_second,
                       .least_share = kLeastShare,
                       .basis = std::string(facts->source)};
}

std::optional<ExpectedSpeed> expected_cpu_speed(std::size_t core_count, std::optional<double> hertz,
                                                const std::vector<std::string>& instruction_sets,
                                                Precision precision) {
  constexpr double kLeastShare = 0.5;
  if (!hertz || precision != Precision::Fp32 || instruction_sets.empty()) return std::nullopt;
  const auto has = [&](const char* name) {
    return std::find(instruction_sets.begin(), instruction_sets.end(), name) !=
           instruction_sets.end();
  };
  const auto* set = has("avx512f") ? "avx512f" : (has("fma") ? "fma" : "sse");
  const int flops_per_cycle = has("avx512f") ? 32 : (has("fma") ? 16 : 8);
  return ExpectedSpeed{
      .flops_per_second = static_cast<double>(core_count) * *hertz * flops_per_cycle,
      .least_share = kLeastShare,
      .basis = fmt::format("{} core{} x {:.2f} GHz x {} operations a cycle ({})", core_count,
                           core_count == 1 ? "" : "s", *hertz * 1e-9, flops_per_cycle, set)};
}

}  // namespace muster
