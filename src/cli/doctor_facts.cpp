// Collects facts and judges nothing: torch, worker, cache or a driver that is not well is kept as
// an error or an absent fact, so that one broken part does not end the examination of the others.
// Devices are watched for two seconds, and the worst finding of each kind is kept, since a fault
// that comes and goes would be missed by a single look.

#include "cli/doctor_facts.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/build_info.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/ask_program.h"
#include "cli/find_machine.h"
#include "cli/lost_gpus.h"
#include "cli/places.h"
#include "cli/telemetry_options.h"
#include "doctor/checks.h"
#include "doctor/system_facts.h"
#include "hw/inventory.h"

namespace muster {
namespace {

// A driver that hangs is called so after a second and its device is down after one and a half; the
// clock's events are then those of a while and not of one moment.
constexpr auto kWatchTime = std::chrono::seconds(2);
constexpr auto kLookEvery = std::chrono::milliseconds(250);
constexpr auto kVersionTime = std::chrono::seconds(20);  // torch's libraries from a cold disk
constexpr std::uint64_t kVersionFileSizeMax = 1 << 16;

// "cuda: Optional[str] = '13.0'" in torch/version.py; None in a wheel for CPUs.
std::optional<std::string> quoted_after(const std::string& text, const std::string& name) {
  const auto line = ("\n" + text).find("\n" + name);
  if (line == std::string::npos) return std::nullopt;
  const auto whole = text.substr(line, text.find('\n', line) - line);
  const auto open = whole.find('\'');
  const auto close = open == std::string::npos ? open : whole.find('\'', open + 1);
  if (close == std::string::npos) return std::nullopt;
  return whole.substr(open + 1, close - open - 1);
}

// What the dynamic loader does not find for a library: lines "libcublas.so.13 => not found" of
// ldd(1). Empty where ldd cannot tell.
std::vector<std::string> missing_libraries(const std::filesystem::path& library) {
  const auto answer = ask_program(
      {"env", "LC_ALL=C", "LD_LIBRARY_PATH=" + library.parent_path().string(), "ldd", library},
      kVersionTime);
  std::vector<std::string> missing;
  if (!answer) return missing;
  for (const auto& line : split(*answer, '\n')) {
    const auto arrow = line.find(" => not found");
    if (arrow != std::string::npos) missing.emplace_back(trim(line.substr(0, arrow)));
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

Result<TorchFacts> torch_facts(const Config& config, bool has_gpu) {
  const auto place = MUSTER_TRY(find_torch_root(config));
  const auto text = MUSTER_TRY(read_file(place.path / "version.py", kVersionFileSizeMax));
  std::error_code ignored;
  TorchFacts facts{
      .root = std::filesystem::absolute(place.path, ignored).lexically_normal(),
      .how = place.how,
      .version = quoted_after(text, "__version__").value_or("2.11"),
      .cuda_version = quoted_after(text, "cuda"),
      .has_cuda_library = std::filesystem::exists(place.path / "lib/libtorch_cuda.so", ignored)};
  // ldd loads nothing of the library into this process, and its answer names every library that is
  // missing at once.
  if (has_gpu && facts.has_cuda_library) {
    facts.missing_libraries = missing_libraries(facts.root / "lib/libtorch_cuda.so");
  }
  return facts;
}

// "muster-worker 0.1.0 (cc14302)". It is asked with torch's libraries on its path, as it is
// started.
Result<WorkerFacts> worker_facts(const Config& config, const Result<TorchFacts>& torch) {
  const auto place = MUSTER_TRY(find_worker_program(config));
  std::vector<std::string> command{"env"};
  if (torch) command.push_back("LD_LIBRARY_PATH=" + (torch->root / "lib").string());
  command.insert(command.end(), {place.path.string(), "--version"});
  const auto answer = ask_program(command, kVersionTime);
  constexpr std::string_view kName = "muster-worker ";
  if (!answer || !answer->starts_with(kName)) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("{} does not tell its version{}{}", place.path.string(),
                             answer ? "" : ": ", answer ? "" : answer.error().message)};
  }
  return WorkerFacts{.program = place.path,
                     .build = std::string(trim(answer->substr(kName.size())))};
}

Result<FolderFacts> cache_facts(const Config& config) {
  return read_folder_facts(MUSTER_TRY(find_cache_folder(config)).path);
}

// The machine's own facts, its GPUs being those that are watched.
Result<Inventory> watched_inventory(const WatchedMachine& machine, const CollectorOptions& options,
                                    const std::optional<std::string>& visible) {
  MachineSources sources;
  sources.root = options.root;
  auto inventory = MUSTER_TRY(find_inventory(sources));
  inventory.gpus = devices_for_work(machine, options.simulated ? std::nullopt : visible);
  inventory.gpu_absent_reason = machine.gpu_absent_reason;
  if (options.simulated) {
    inventory.cpus.clear();
    for (const auto& identity : machine.devices) {
      if (identity.device.kind == DeviceKind::Cpu) inventory.cpus.push_back(identity.device);
    }
  }
  return inventory;
}

// A driver that does not let the collector start is a finding, not the end of the examination.
Result<std::unique_ptr<Collector>> start_collector(const CollectorOptions& options,
                                                   const Clock& clock, DoctorFacts& facts) {
  auto collector = Collector::start(options, clock);
  if (collector) return collector;
  const bool is_driver = collector.error().kind == ErrorKind::Unavailable ||
                         collector.error().kind == ErrorKind::DeadlineExceeded;
  if (!is_driver || options.simulated) return collector.error();
  facts.snapshot.gpu_absent_reason = "the devices cannot be watched: " + collector.error().message;
  return std::unique_ptr<Collector>();
}

}  // namespace

Result<Examination> examine(const CommandContext& context) {
  auto options = MUSTER_TRY(collector_options(context));
  // Often, so that what shows under the load of a compute test is seen.
  options.periods = {std::chrono::milliseconds(100), std::chrono::milliseconds(500),
                     std::chrono::seconds(1)};
  options.history = Duration{0};
  Examination examination;
  auto& facts = examination.facts;
  facts.is_simulated = options.simulated.has_value();
  facts.build = std::string(build_name());
  facts.cuda_visible_devices = environment_variable("CUDA_VISIBLE_DEVICES");
  examination.collector = MUSTER_TRY(start_collector(options, context.clock, facts));
  WatchedMachine machine;
  machine.gpu_absent_reason = facts.snapshot.gpu_absent_reason;
  if (examination.collector) machine = examination.collector->machine();
  facts.inventory = MUSTER_TRY(watched_inventory(machine, options, facts.cuda_visible_devices));
  if (examination.collector && !facts.is_simulated) {
    mark_lost(facts.inventory.gpus, examination.collector->snapshot().devices,
              CudaVariables::of_environment());
  }
  if (!facts.is_simulated) {
    if (const auto worker = find_worker_program(context.config)) {
      facts.inventory.standins = find_standins(worker->path);
    }
    facts.system = read_system_facts(options.root);
    facts.torch = torch_facts(context.config, !facts.inventory.gpus.empty());
    facts.worker = worker_facts(context.config, facts.torch);
    facts.cache = cache_facts(context.config);
  }
  if (examination.collector) {
    const auto end = context.clock.now() + kWatchTime;
    facts.snapshot = examination.collector->snapshot();
    while (context.clock.now() < end) {
      (void)::poll(nullptr, 0, static_cast<int>(kLookEvery.count()));
      merge_worse_findings(*examination.collector, facts);
    }
  }
  merge_kernel_xids(facts);
  return examination;
}

// Readings stay those of the first look; only findings get worse, since a fault that has passed is
// still one.
void merge_worse_findings(const Collector& collector, DoctorFacts& facts) {
  const auto newest = collector.snapshot();
  facts.snapshot.collector = newest.collector;
  auto& known = facts.snapshot.devices;
  for (std::size_t i = 0; i < newest.devices.size() && i < known.size(); ++i) {
    for (const auto& finding : newest.devices[i].health) {
      auto& health = known[i].health;
      const auto same = std::find_if(health.begin(), health.end(), [&](const HealthFinding& old) {
        return old.watch == finding.watch;
      });
      if (same == health.end()) {
        health.push_back(finding);
      } else if (finding.state > same->state) {
        *same = finding;
      }
    }
  }
}

}  // namespace muster
