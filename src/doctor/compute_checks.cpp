// Judges what the test products gave. A wrong result makes a device unfit, whatever its speed; a
// slow one is only a warning. Speed is compared twice: with what the model should reach, and
// with fellows of the same model in this machine, which needs no catalogue. Speeds are those of
// the time the cores were really ours, so a busy machine is not taken for a slow device.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "doctor/checks.h"
#include "doctor/expected_speed.h"

namespace muster {
namespace {

// Devices of one model differ by a few percent; a fifth less than the middle one is another cause.
constexpr double kOutlierShare = 0.8;

// Of a round's time, what the cores must have been ours for the speed to be the device's own.
constexpr double kBusyLeast = 0.8;

std::string shown_flops(double flops) {
  return flops >= 1e12 ? fmt::format("{:.1f} Tflop/s", flops * 1e-12)
                       : fmt::format("{:.1f} Gflop/s", flops * 1e-9);
}

std::string shown_speeds(const ComputeOutcome& outcome) {
  std::vector<std::string> words;
  for (const auto& speed : outcome.speeds) {
    words.push_back(
        fmt::format("{} {}", precision_name(speed.precision), shown_flops(speed.flops_per_second)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// Products are compared for equality: the entries are chosen so that every sum is exact in the
// precision that is tested.
Check result_check(const ComputeOutcome& outcome) {
  Check check{.name = "compute", .device = outcome.device.name()};
  if (outcome.error) {
    check.verdict = Verdict::Unfit;
    check.sentence = fmt::format("the test product could not be made: {}", outcome.error->message);
    check.advice = "what other checks say of this device, of torch and of the worker comes first";
    return check;
  }
  for (const auto& speed : outcome.speeds) {
    if (speed.wrong_row_count == 0) continue;
    check.verdict = Verdict::Unfit;
    check.sentence = fmt::format("a product of matrices is wrong: {}, rows: {}",
                                 precision_name(speed.precision), speed.wrong_row_count);
    check.advice =
        "take the device out of use: it gives wrong results and no error; test its "
        "memory, lower its clock, have it replaced";
    return check;
  }
  check.sentence = fmt::format("exact products: {}", shown_speeds(outcome));
  return check;
}

std::optional<ExpectedSpeed> expected_of(const ComputeOutcome& outcome, const ProductSpeed& speed,
                                         const DoctorFacts& facts) {
  const auto& device = outcome.device;
  if (device.kind != DeviceKind::Cpu) return expected_gpu_speed(device.model, speed.precision);
  std::optional<double> hertz;
  for (const auto& status : facts.snapshot.devices) {
    if (status.identity.device.kind != DeviceKind::Cpu) continue;
    hertz = status.readings.get(Reading::CpuFrequency);
    if (hertz) break;
  }
  return expected_cpu_speed(device.cpus.size(), hertz, facts.inventory.instruction_sets,
                            speed.precision);
}

// The first precision that is too slow decides; otherwise the first that can be compared gives
// the sentence.
Check speed_check(const ComputeOutcome& outcome, const DoctorFacts& facts) {
  Check check{.name = "compute_speed", .device = outcome.device.name()};
  for (const auto& speed : outcome.speeds) {
    const auto expected = expected_of(outcome, speed, facts);
    if (!expected) continue;
    const double share = speed.own_flops_per_second() / expected->flops_per_second;
    const auto words =
        fmt::format("{} in {}, {:.0f} % of {} ({})", shown_flops(speed.own_flops_per_second()),
                    precision_name(speed.precision), share * 100,
                    shown_flops(expected->flops_per_second), expected->basis);
    if (share < expected->least_share) {
      check.verdict = Verdict::Warning;
      check.sentence = "slower than the device should be: " + words;
      check.advice =
          "look at throttling, links and power limits above; a CPU in a power saving "
          "governor is slow too";
      return check;
    }
    if (check.sentence.empty()) check.sentence = "as fast as it should be: " + words;
  }
  if (check.sentence.empty()) {
    check.sentence = "nothing is known to compare it with: " + shown_speeds(outcome);
  }
  return check;
}

std::optional<Check> shared_check(const ComputeOutcome& outcome) {
  double least = 1;
  for (const auto& speed : outcome.speeds) least = std::min(least, speed.busy_share);
  if (least >= kBusyLeast) return std::nullopt;
  return Check{.name = "compute_shared",
               .device = outcome.device.name(),
               .verdict = Verdict::Warning,
               .sentence = fmt::format("other programs had the cores for a part of the best round: "
                                       "{:.0f} %",
                                       (1 - least) * 100),
               .advice = "end them, or give muster other cores: --devices, --cores-per-device"};
}

// Speed a core of a CPU device, or of the whole GPU: what can be compared among devices.
std::optional<double> comparable(const ComputeOutcome& outcome) {
  if (outcome.speeds.empty()) return std::nullopt;
  const auto& speed = outcome.speeds.back();  // the narrowest precision is the fastest path
  const auto cores = std::max<std::size_t>(1, outcome.device.cpus.size());
  return speed.own_flops_per_second() / static_cast<double>(cores);
}

std::optional<Check> outlier_check(const ComputeOutcome& outcome,
                                   const std::vector<ComputeOutcome>& all) {
  std::vector<double> fellows;
  for (const auto& other : all) {
    const bool is_fellow =
        other.device.kind == outcome.device.kind && other.device.model == outcome.device.model;
    const auto speed = is_fellow ? comparable(other) : std::nullopt;
    if (speed) fellows.push_back(*speed);
  }
  const auto mine = comparable(outcome);
  if (!mine || fellows.size() < 2) return std::nullopt;
  // The upper of two middle ones, so that the slower of two devices is compared with the other.
  const auto middle = fellows.begin() + static_cast<std::ptrdiff_t>(fellows.size() / 2);
  std::nth_element(fellows.begin(), middle, fellows.end());
  if (*mine >= kOutlierShare * *middle) return std::nullopt;
  return Check{.name = "compute_outlier",
               .device = outcome.device.name(),
               .verdict = Verdict::Warning,
               .sentence = fmt::format("slower than its fellows: {:.0f} % of the middle one",
                                       *mine / *middle * 100),
               .advice = "look at what else runs there, at its cooling and its power"};
}

}  // namespace

std::vector<Check> check_compute(const DoctorFacts& facts) {
  if (facts.compute.empty()) {
    return {{.name = "compute",
             .device = {},
             .verdict = Verdict::NotApplicable,
             .sentence = facts.compute_left_out,
             .advice = {}}};
  }
  std::vector<Check> checks;
  for (const auto& outcome : facts.compute) {
    checks.push_back(result_check(outcome));
    if (checks.back().verdict == Verdict::Unfit) continue;
    checks.push_back(speed_check(outcome, facts));
    if (const auto shared = shared_check(outcome)) checks.push_back(*shared);
    if (const auto outlier = outlier_check(outcome, facts.compute)) checks.push_back(*outlier);
  }
  return checks;
}

}  // namespace muster
