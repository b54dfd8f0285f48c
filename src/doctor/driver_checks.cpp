// The driver, its kernel module and the CUDA of torch must fit together, and each pair fails in
// its own way. Where a GPU is on the PCI bus and the driver shows none, that is a fault; where
// there is no GPU either, there is nothing to check. A simulated machine has no driver at all.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.h"
#include "doctor/checks.h"

namespace muster {
namespace {

bool is_nvidia(const DeviceStatus& status) {
  return status.identity.device.kind == DeviceKind::Cuda && !status.identity.parent;
}

bool has_nvidia_gpu(const TelemetrySnapshot& snapshot) {
  return std::any_of(snapshot.devices.begin(), snapshot.devices.end(), is_nvidia);
}

// "13.0" -> 13.
std::uint32_t major_of(std::string_view version) {
  std::uint32_t value = 0;
  std::from_chars(version.data(), version.data() + version.size(), value);
  return value;
}

Check absent_driver(const DoctorFacts& facts) {
  const auto reason = facts.snapshot.gpu_absent_reason.value_or("no GPU was found");
  Check check{.name = "driver", .sentence = reason};
  const bool has_gpu = facts.system.nvidia_gpus_on_bus > 0 || facts.system.nvidia_module;
  // What hw says where there is nothing to be driven; any other reason is a driver in trouble.
  const bool is_missing =
      reason.starts_with("no ") || reason.find("has no GPU") != std::string::npos;
  if (!has_gpu && is_missing) {
    check.verdict = Verdict::NotApplicable;
    return check;
  }
  check.verdict = Verdict::Unfit;
  if (facts.system.nvidia_gpus_on_bus > 0) {
    check.sentence = fmt::format("NVIDIA GPUs on the PCI bus that cannot be used: {}; {}",
                                 facts.system.nvidia_gpus_on_bus, reason);
  }
  check.advice =
      "install the driver that fits the GPU and the kernel, or restart after an update of it: "
      "library and kernel module must be of one version";
  return check;
}

Check present_driver(const DoctorFacts& facts) {
  Check check{.name = "driver"};
  const auto& devices = facts.snapshot.devices;
  const auto first = std::find_if(devices.begin(), devices.end(), is_nvidia);
  const auto& version = first->identity.driver_version;
  const auto& cuda = first->identity.cuda_version;
  if (version && facts.system.nvidia_module && *version != *facts.system.nvidia_module) {
    check.verdict = Verdict::Warning;
    check.sentence = fmt::format("the library's driver and the kernel's module differ: {} and {}",
                                 *version, *facts.system.nvidia_module);
    check.advice = "restart the machine, or load the module of the installed driver";
    return check;
  }
  check.sentence = fmt::format("driver {}, runs CUDA up to {}", version.value_or("of no version"),
                               cuda.value_or("an unknown version"));
  return check;
}

// Nothing but a driver's call can bring the sampler down, or somebody who ends it.
Check driver_crashes(const DoctorFacts& facts) {
  const auto restarts = facts.snapshot.collector.restarts;
  Check check{.name = "driver_crashes",
              .sentence = "no driver call ended the process that made it"};
  if (restarts > 0) {
    check.verdict = Verdict::Warning;
    check.sentence = fmt::format(
        "the process that asks the drivers died and was started again: {} times", restarts);
    check.advice = "update the driver; a device in whose call it dies twice is left out and named";
  }
  return check;
}

// A wheel's programs run on a driver of the same or a newer major version of CUDA.
// Source: NVIDIA, CUDA Compatibility, r580, "Minor Version Compatibility".
Check driver_and_torch(const DoctorFacts& facts) {
  Check check{.name = "driver_cuda"};
  const auto& devices = facts.snapshot.devices;
  const auto first = std::find_if(devices.begin(), devices.end(), is_nvidia);
  if (first == devices.end() || !facts.torch || !facts.torch->cuda_version) {
    check.verdict = Verdict::NotApplicable;
    check.sentence = "there is no NVIDIA GPU, or no torch with CUDA";
    return check;
  }
  const auto& wanted = *facts.torch->cuda_version;
  const auto& offered = first->identity.cuda_version;
  if (!offered) {
    check.verdict = Verdict::NotSeen;
    check.sentence = "the driver does not tell which CUDA it runs";
  } else if (major_of(*offered) < major_of(wanted)) {
    check.verdict = Verdict::Unfit;
    check.sentence = fmt::format(
        "torch needs a newer driver: it is made for CUDA {}, the driver "
        "runs at most {}",
        wanted, *offered);
    check.advice = "update the NVIDIA driver, or name a torch wheel of an older CUDA (torch_root)";
  } else {
    check.sentence = fmt::format("the driver runs CUDA {}, torch is made for {}", *offered, wanted);
  }
  return check;
}

// Whether an entry of CUDA_VISIBLE_DEVICES names one of the devices.
// Source: CUDA C++ Programming Guide 13.0, "CUDA Environment Variables".
bool names_a_device(const std::string& entry, const TelemetrySnapshot& snapshot) {
  std::size_t gpu_count = 0;
  for (const auto& status : snapshot.devices) {
    const auto& uuid = status.identity.device.uuid;
    gpu_count += is_nvidia(status) ? 1 : 0;
    if (uuid && uuid->starts_with(entry) && entry.find('-') != std::string::npos) return true;
  }
  std::size_t index = 0;
  const auto [end, code] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  return code == std::errc{} && end == entry.data() + entry.size() && index < gpu_count;
}

// CUDA stops reading the list at the first entry that names nothing, so one typing error hides
// all GPUs behind it.
Check visible_devices(const DoctorFacts& facts) {
  Check check{.name = "visible_devices"};
  if (!facts.cuda_visible_devices || facts.is_simulated) {
    check.sentence = "CUDA_VISIBLE_DEVICES is not set";
    return check;
  }
  std::vector<std::string> missing;
  if (!trim(*facts.cuda_visible_devices).empty()) {
    for (const auto& entry : split(*facts.cuda_visible_devices, ',')) {
      const std::string name(trim(entry));
      if (!names_a_device(name, facts.snapshot)) missing.push_back(name);
    }
  }
  std::vector<std::string> hidden;
  for (const auto& status : facts.snapshot.devices) {
    const bool has_slices = status.identity.is_mig_on.value_or(false);
    const bool is_lost = !status.lost_reason.empty();  // nobody hides it
    if (is_nvidia(status) && !has_slices && !is_lost && !status.identity.cuda_ordinal) {
      hidden.push_back(status.name);
    }
  }
  check.verdict = missing.empty() && hidden.empty() ? Verdict::Well : Verdict::Warning;
  if (!missing.empty()) {
    check.sentence =
        fmt::format("CUDA_VISIBLE_DEVICES names what is not here, and hides what follows it: {}",
                    fmt::join(missing, ", "));
  } else if (!hidden.empty()) {
    check.sentence = fmt::format("CUDA_VISIBLE_DEVICES hides {}", fmt::join(hidden, ", "));
  } else {
    check.sentence = "CUDA_VISIBLE_DEVICES hides no GPU";
  }
  if (check.verdict != Verdict::Well) {
    check.advice =
        "unset CUDA_VISIBLE_DEVICES, or name the GPUs that are here; "
        "`muster devices` lists them";
  }
  return check;
}

}  // namespace

// Order is that of causes: without a driver, what follows has nothing to look at.
std::vector<Check> check_driver(const DoctorFacts& facts) {
  if (facts.is_simulated) {
    return {{.name = "driver",
             .verdict = Verdict::NotApplicable,
             .sentence = "the machine is simulated: " + facts.snapshot.machine}};
  }
  std::vector<Check> checks;
  checks.push_back(has_nvidia_gpu(facts.snapshot) ? present_driver(facts) : absent_driver(facts));
  checks.push_back(driver_crashes(facts));
  checks.push_back(driver_and_torch(facts));
  if (has_nvidia_gpu(facts.snapshot)) checks.push_back(visible_devices(facts));
  return checks;
}

}  // namespace muster
