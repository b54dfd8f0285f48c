// Turns what the collector knows of a device into verdicts with advice. The rules of health are
// those of telemetry/health.h and are not repeated here: a finding becomes a check as it is.
// What is added are settings that are legal and unwise (modes, other programs, links), so most
// of these are warnings. Mode "prohibited" and MIG without a slice are unfit, since nothing can
// compute there.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "doctor/checks.h"
#include "spec/gpu_catalogue.h"

namespace muster {
namespace {

struct WatchAdvice {
  std::string_view watch;
  std::string_view advice;
};

// What to do about each watch of telemetry/health.h.
// Source: NVIDIA, "XID Errors" r580 and "GPU Debug Guidelines" (2025): drain, reset, then replace.
constexpr std::array kAdvice{
    WatchAdvice{"present",
                "look into the kernel's log (dmesg); reset the GPU or restart the machine"},
    WatchAdvice{"xid",
                "stop what runs there, reset the GPU (nvidia-smi -r -i); look the XID up in "
                "NVIDIA's list; when it returns, have the GPU replaced"},
    WatchAdvice{"recovery",
                "do what the driver asks for: drain the GPU, then reset it or restart "
                "the machine"},
    WatchAdvice{"ecc", "reset the GPU; when uncorrected errors return, have it replaced"},
    WatchAdvice{"remap", "reset the GPU so that rows are remapped; a failed remap needs a new GPU"},
    WatchAdvice{"pages", "have the GPU replaced when the number of retired pages grows"},
    WatchAdvice{"thermal", "look after fans, filters and air flow, or lower the power limit"},
    WatchAdvice{"power_brake", "look after the power supplies and the power that the rack allows"},
    WatchAdvice{"nvlink",
                "look after bridges or switch and their fabric manager, then reset the GPU"},
    WatchAdvice{"pcie", "reseat the card or its riser; look into the firmware's slot settings"},
    WatchAdvice{"memory", "end what holds the memory, or choose another device"},
};

std::string advice_of(std::string_view watch) {
  for (const auto& row : kAdvice) {
    if (row.watch == watch) return std::string(row.advice);
  }
  return {};
}

Check from_finding(const HealthFinding& finding, const std::string& device) {
  Check check{.name = finding.watch, .device = device, .sentence = finding.sentence};
  if (finding.state == HealthState::Well) {
    check.sentence = "nothing is wrong";
    return check;
  }
  check.verdict = finding.state == HealthState::Unfit ? Verdict::Unfit : Verdict::Warning;
  check.advice = advice_of(finding.watch);
  return check;
}

// A check of a mode that the driver may not tell.
Check mode_check(std::string name, const std::string& device, std::optional<bool> is_right,
                 std::string_view right, std::string_view wrong, std::string advice) {
  Check check{.name = std::move(name), .device = device};
  if (!is_right) {
    check.verdict = Verdict::NotApplicable;
    check.sentence = "the device has no such mode";
  } else if (*is_right) {
    check.sentence = right;
  } else {
    check.verdict = Verdict::Warning;
    check.sentence = wrong;
    check.advice = std::move(advice);
  }
  return check;
}

// Source: nvml.h 13.3, nvmlComputeMode_t.
Check compute_mode(const DeviceStatus& status) {
  constexpr std::uint32_t kDefault = 0;
  constexpr std::uint32_t kProhibited = 2;
  Check check{.name = "compute_mode", .device = status.name};
  const auto mode = status.identity.compute_mode;
  if (!mode) {
    check.verdict = Verdict::NotApplicable;
    check.sentence = "the device has no such mode";
  } else if (*mode == kProhibited) {
    check.verdict = Verdict::Unfit;
    check.sentence = "compute mode is prohibited: no program may compute here";
    check.advice = "nvidia-smi -c DEFAULT for this GPU";
  } else if (*mode != kDefault) {
    check.verdict = Verdict::Warning;
    check.sentence = "compute mode is exclusive: one program at a time";
    check.advice = "nvidia-smi -c DEFAULT, unless that is meant";
  } else {
    check.sentence = "compute mode is default";
  }
  return check;
}

Check mig_mode(const DeviceStatus& status, const TelemetrySnapshot& snapshot) {
  Check check{.name = "mig", .device = status.name};
  if (!status.identity.is_mig_on.value_or(false)) {
    check.verdict = Verdict::NotApplicable;
    check.sentence = "MIG is off";
    return check;
  }
  const auto slices = std::count_if(
      snapshot.devices.begin(), snapshot.devices.end(), [&](const DeviceStatus& other) {
        return other.identity.parent && other.identity.parent == status.identity.device.uuid;
      });
  check.sentence = fmt::format("MIG is on, with {} slice{}", slices, slices == 1 ? "" : "s");
  if (slices == 0) {
    check.verdict = Verdict::Unfit;
    check.sentence = "MIG is on and there is no slice to compute on";
    check.advice = "make slices (nvidia-smi mig -cgi … -C), or switch MIG off (nvidia-smi -mig 0)";
  }
  return check;
}

Check foreign_processes(const DeviceStatus& status) {
  Check check{.name = "processes", .device = status.name};
  constexpr std::size_t kNamedMost = 3;
  std::vector<std::string> names;
  std::size_t count = 0;
  for (const auto& process : status.processes) {
    if (process.kind == GpuProcessKind::Graphics) continue;  // a desktop, not somebody's work
    if (++count > kNamedMost) continue;
    names.push_back(
        fmt::format("{} (pid {}{})", process.command.empty() ? "a program" : process.command,
                    process.pid == 0 ? "of another container" : std::to_string(process.pid),
                    process.memory_bytes ? ", " + human_bytes(*process.memory_bytes) : ""));
  }
  if (count == 0) {
    check.sentence = "no other program computes there";
    return check;
  }
  if (count > kNamedMost) names.push_back(fmt::format("{} more", count - kNamedMost));
  check.verdict = Verdict::Warning;
  check.sentence = fmt::format("other programs compute there: {}", fmt::join(names, ", "));
  check.advice = "wait for them, or choose another device with --devices";
  return check;
}

// What holds the clock down at this moment and is a reason for concern; heat and power brake are
// watches of their own.
Check throttling(const DeviceStatus& status) {
  Check check{.name = "throttling", .device = status.name};
  const auto events = status.readings.get(Reading::GpuClockEvents);
  if (!events) {
    check.verdict = Verdict::NotApplicable;
    check.sentence = "the device does not tell what holds its clock";
    return check;
  }
  const auto mask = static_cast<std::uint64_t>(*events);
  std::vector<std::string_view> reasons;
  for (const auto& row : clock_events()) {
    const bool is_set = (mask & static_cast<std::uint64_t>(row.event)) != 0;
    const bool is_concern = row.letter >= 'A' && row.letter <= 'Z';
    if (is_set && is_concern) reasons.push_back(row.words);
  }
  check.sentence = "nothing holds its clock down";
  if (!reasons.empty()) {
    check.verdict = Verdict::Warning;
    check.sentence = fmt::format("the clock is held down now: {}", fmt::join(reasons, ", "));
    check.advice =
        "`muster top` shows which, when and for how long; more power or cooling lifts it";
  }
  return check;
}

bool is_whole_gpu(const DeviceStatus& status) {
  return status.identity.device.kind != DeviceKind::Cpu && !status.identity.parent;
}

// Fewer links than its fellows of the same model have.
std::optional<Check> fewer_links(const DeviceStatus& status, const TelemetrySnapshot& snapshot) {
  const auto mine = status.readings.get(Reading::GpuNvlinkLinksActive);
  if (!mine) return std::nullopt;
  double most = *mine;
  for (const auto& other : snapshot.devices) {
    if (other.identity.device.model != status.identity.device.model) continue;
    most = std::max(most, other.readings.get(Reading::GpuNvlinkLinksActive).value_or(0));
  }
  Check check{.name = "nvlink_peers", .device = status.name};
  check.sentence = fmt::format("as many NVLinks as its fellows: {:.0f}", *mine);
  if (*mine < most) {
    check.verdict = Verdict::Warning;
    check.sentence = fmt::format("fewer NVLinks than its fellows: {:.0f} of {:.0f}", *mine, most);
    check.advice = advice_of("nvlink");
  }
  return check;
}

// Pairs of GPUs that their board should join by NVLink or XGMI and does not.
std::vector<std::string> missing_pairs(const TelemetrySnapshot& snapshot) {
  std::vector<const DeviceStatus*> gpus;
  for (const auto& status : snapshot.devices) {
    if (is_whole_gpu(status)) gpus.push_back(&status);
  }
  std::vector<std::string> missing;
  const auto& links = snapshot.links;
  const auto count = std::min<std::size_t>(links.device_count, gpus.size());
  for (std::size_t a = 0; a < count; ++a) {
    const auto& model = gpus[a]->identity.device.model;
    const auto* facts = find_gpu_by_driver_name(model);
    const bool is_joined = facts != nullptr &&
                           (facts->fabric == GpuFabric::Mesh || facts->fabric == GpuFabric::Switch);
    for (std::size_t b = a + 1; is_joined && b < count; ++b) {
      const auto kind = links.labels[a * links.device_count + b].kind;
      if (gpus[b]->identity.device.model != model) continue;
      if (kind != LinkKind::NvLink && kind != LinkKind::Xgmi) {
        missing.push_back(gpus[a]->name + " and " + gpus[b]->name);
      }
    }
  }
  return missing;
}

}  // namespace

std::vector<Check> check_device(const DeviceStatus& status, const DoctorFacts& facts) {
  std::vector<Check> checks;
  for (const auto& finding : status.health) checks.push_back(from_finding(finding, status.name));
  if (!is_whole_gpu(status)) return checks;
  checks.push_back(throttling(status));
  checks.push_back(foreign_processes(status));
  if (const auto links = fewer_links(status, facts.snapshot)) checks.push_back(*links);
  if (status.identity.device.kind != DeviceKind::Cuda) return checks;
  checks.push_back(compute_mode(status));
  checks.push_back(mig_mode(status, facts.snapshot));
  checks.push_back(mode_check("ecc_mode", status.name, status.identity.is_ecc_on, "ECC is on",
                              "ECC is off: a flipped bit gives a wrong result and nobody notices",
                              "nvidia-smi -e 1, then reset the GPU"));
  checks.push_back(mode_check(
      "persistence", status.name, status.identity.is_persistent, "the driver stays loaded",
      "persistence mode is off: the driver starts anew for each program that finds the GPU idle",
      "run nvidia-persistenced, or nvidia-smi -pm 1"));
  return checks;
}

std::vector<Check> check_links(const DoctorFacts& facts) {
  if (facts.snapshot.links.device_count < 2) return {};
  constexpr std::size_t kNamedMost = 3;
  auto missing = missing_pairs(facts.snapshot);
  Check check{.name = "links", .sentence = "GPUs reach each other as their boards allow"};
  if (!missing.empty()) {
    const auto count = missing.size();
    if (count > kNamedMost) missing.resize(kNamedMost);
    check.verdict = Verdict::Warning;
    check.sentence =
        fmt::format("GPUs of a board without a direct link: {}{}", fmt::join(missing, "; "),
                    count > kNamedMost ? fmt::format("; {} pairs in all", count) : "");
    check.advice = advice_of("nvlink");
  }
  return {check};
}

}  // namespace muster
