// What the system grants this process: limits, memory, clock, counters, log, cache. A limit that
// is set on purpose is no fault, so these are warnings with the way to lift it. What cannot be
// read because of permissions is "not seen", which is told apart from "not applicable", where
// there is nothing to read.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "doctor/checks.h"

namespace muster {
namespace {

// Descriptors: a worker has its socket, its pidfd, its stderr and, while it starts, their other
// ends; 64 are for the inputs, outputs and the libraries.
constexpr std::uint64_t kFilesPerDevice = 8;
constexpr std::uint64_t kFilesBeside = 64;

// What NVIDIA recommends for containers in which NCCL joins several GPUs.
// Source: NCCL 2.30 documentation, "Troubleshooting", section "Shared memory": --shm-size=1g.
constexpr std::uint64_t kSharedMemoryLeast = 1 << 30;

// A verdict of precisions takes less than a kilobyte; below this the disk is as good as full.
constexpr std::uint64_t kCacheFreeLeast = 1 << 20;

// Clock sources that are read by a system call or over the bus and not in user space.
// Source: Linux, Documentation/timers/timekeeping.rst; arch/x86/include/asm/vdso/clocksource.h
// (tsc, pvclock and hvclock have a vDSO form, and arch_sys_counter on ARM).
constexpr std::array<std::string_view, 5> kSlowClocks{"hpet", "acpi_pm", "jiffies",
                                                      "refined-jiffies", "pit"};

// NotFound means that the machine has no such thing; any other error, that this user may not
// look.
template <typename T>
Check not_looked_at(std::string name, const Result<T>& fact) {
  return {.name = std::move(name),
          .verdict =
              fact.error().kind == ErrorKind::NotFound ? Verdict::NotApplicable : Verdict::NotSeen,
          .sentence = fact.error().message};
}

Check memory_limit(const Inventory& inventory) {
  Check check{.name = "memory_limit"};
  if (!inventory.memory_limit_bytes) {
    check.sentence = fmt::format("all of the machine's memory may be used: {}",
                                 human_bytes(inventory.memory_total_bytes));
    return check;
  }
  check.verdict = Verdict::Warning;
  check.sentence = fmt::format("a cgroup allows less memory than there is: {} of {}",
                               human_bytes(*inventory.memory_limit_bytes),
                               human_bytes(inventory.memory_total_bytes));
  check.advice =
      "raise memory.max of the container or service, unless that is meant; muster keeps "
      "to it";
  return check;
}

Check cpu_limit(const Inventory& inventory) {
  Check check{.name = "cpu_limit"};
  const auto limit = inventory.cpu_limit_cores;
  if (!limit || *limit >= inventory.core_count) {
    check.sentence = fmt::format("no quota below the cores: {}", inventory.core_count);
    return check;
  }
  check.verdict = Verdict::Warning;
  check.sentence = fmt::format("a cgroup allows less CPU time than there are cores: {:g} of {}",
                               *limit, inventory.core_count);
  check.advice =
      "raise cpu.max of the container or service, unless that is meant; muster keeps to "
      "it";
  return check;
}

Check affinity(const DoctorFacts& facts) {
  Check check{.name = "affinity"};
  const auto online = facts.system.cpus_online;
  const auto allowed = facts.inventory.allowed_cpus.size();
  if (!online) {
    check.verdict = Verdict::NotSeen;
    check.sentence = "the system does not tell which CPUs are online";
  } else if (allowed < *online) {
    check.verdict = Verdict::Warning;
    check.sentence =
        fmt::format("only some CPUs may be used: {} of {} that are online", allowed, *online);
    check.advice = "start muster without taskset or a cpuset, unless that is meant";
  } else {
    check.sentence = fmt::format("every CPU may be used: {}", allowed);
  }
  return check;
}

Check open_files(const DoctorFacts& facts) {
  const auto needed = kFilesBeside + kFilesPerDevice * facts.snapshot.devices.size();
  Check check{.name = "open_files",
              .sentence = fmt::format("{} files may be open, {} are needed",
                                      facts.system.open_files_max, needed)};
  if (facts.system.open_files_max < needed) {
    check.verdict = Verdict::Warning;
    check.sentence = fmt::format("too few files may be open: {}, and {} are needed",
                                 facts.system.open_files_max, needed);
    check.advice = "raise it: ulimit -n 1024, or LimitNOFILE of the service";
  }
  return check;
}

Check shared_memory(const DoctorFacts& facts) {
  constexpr std::string_view kName = "shared_memory";
  std::size_t gpu_count = 0;
  for (const auto& status : facts.snapshot.devices) {
    gpu_count += status.identity.device.kind != DeviceKind::Cpu ? 1 : 0;
  }
  if (gpu_count < 2) {
    return {.name = std::string(kName),
            .verdict = Verdict::NotApplicable,
            .sentence = "it matters where several GPUs work together"};
  }
  const auto& memory = facts.system.shared_memory;
  if (!memory) return not_looked_at(std::string(kName), memory);
  Check check{.name = std::string(kName),
              .sentence = fmt::format("/dev/shm has {}", human_bytes(memory->size_bytes))};
  if (memory->size_bytes < kSharedMemoryLeast) {
    check.verdict = Verdict::Warning;
    check.sentence =
        fmt::format("/dev/shm is small for several GPUs: {}", human_bytes(memory->size_bytes));
    check.advice = "give the container more: --shm-size=1g or --ipc=host";
  }
  return check;
}

Check clock_source(const DoctorFacts& facts) {
  const auto& clock = facts.system.clock_source;
  if (!clock) return not_looked_at("clock_source", clock);
  Check check{.name = "clock_source", .sentence = fmt::format("time is read from {}", *clock)};
  if (std::find(kSlowClocks.begin(), kSlowClocks.end(), *clock) != kSlowClocks.end()) {
    check.verdict = Verdict::Warning;
    check.sentence =
        fmt::format("each look at the clock is a system call: time is read from {}", *clock);
    check.advice = "see in the kernel's log why tsc was given up; measured times are less exact";
  }
  return check;
}

Check energy(const DoctorFacts& facts) {
  const auto& domains = facts.system.energy_domains;
  if (domains) {
    return {.name = "cpu_energy",
            .sentence = fmt::format("the CPUs' energy counters can be read: {}", *domains)};
  }
  auto check = not_looked_at("cpu_energy", domains);
  if (check.verdict == Verdict::NotSeen) {
    check.advice =
        "without it the CPUs' energy is missing from reports: run as root, or let this "
        "user read energy_uj";
  }
  return check;
}

Check kernel_log(const DoctorFacts& facts) {
  const auto& xids = facts.system.kernel_xids;
  if (!xids) {
    auto check = not_looked_at("kernel_log", xids);
    if (check.verdict == Verdict::NotSeen) {
      check.advice = "XIDs from before now are in it: run as root, or set kernel.dmesg_restrict=0";
    }
    return check;
  }
  return {.name = "kernel_log", .sentence = fmt::format("XIDs since the start: {}", xids->size())};
}

Check cache_folder(const DoctorFacts& facts) {
  const auto& cache = facts.cache;
  if (!cache) return not_looked_at("cache", cache);
  Check check{.name = "cache",
              .sentence = fmt::format("{} has room: {}", cache->folder.string(),
                                      human_bytes(cache->free_bytes))};
  if (!cache->is_writable) {
    check.verdict = Verdict::Warning;
    check.sentence = fmt::format("the cache cannot be written: {}", cache->folder.string());
  } else if (cache->free_bytes < kCacheFreeLeast) {
    check.verdict = Verdict::Warning;
    check.sentence = fmt::format("the disk of the cache is full: {} has {}", cache->folder.string(),
                                 human_bytes(cache->free_bytes));
  }
  if (check.verdict == Verdict::Warning) {
    check.advice =
        "name another folder (cache_dir); without one every run measures precisions "
        "anew";
  }
  return check;
}

}  // namespace

std::vector<Check> check_system(const DoctorFacts& facts) {
  return {memory_limit(facts.inventory),
          cpu_limit(facts.inventory),
          affinity(facts),
          open_files(facts),
          shared_memory(facts),
          clock_source(facts),
          energy(facts),
          kernel_log(facts),
          cache_folder(facts)};
}

}  // namespace muster
