#include "fake_nvml/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/file.h"
#include "fake_nvml/scenario_parts.h"

namespace muster::fake_nvml {
namespace {

constexpr std::uint64_t kFormat = 1;
constexpr std::uint64_t kFileBytesMax = 16 << 20;
constexpr std::array<std::string_view, 13> kKeys{"fake_nvml",
                                                 "driver",
                                                 "cuda",
                                                 "process_entry_bytes",
                                                 "clock",
                                                 "clock_file",
                                                 "statistics_file",
                                                 "gpus",
                                                 "nvlink",
                                                 "errors",
                                                 "hang",
                                                 "crash",
                                                 "delays_us"};

struct Series {
  std::uint32_t generation;
  std::string_view driver;
  std::uint32_t cuda;  // as nvmlSystemGetCudaDriverVersion tells it
};
// Source: NVIDIA, CUDA toolkit release notes, table "CUDA toolkit and corresponding driver
// versions".
constexpr std::array kSeries{Series{450, "450.248.02", 11000}, Series{535, "535.104.05", 12020},
                             Series{580, "580.95.05", 13000}, Series{590, "590.48.01", 13010}};

const Series& series_of(std::uint32_t generation) {
  const auto* found = &kSeries.front();
  for (const auto& series : kSeries) {
    if (series.generation <= generation) found = &series;
  }
  return *found;
}

void set_generation(Scenario& scenario, std::uint32_t generation) {
  scenario.generation = generation;
  scenario.cuda_version = series_of(generation).cuda;
  // Source: nvitop, libnvml.py: these drivers fill 32 bytes where 24 are meant.
  scenario.process_entry_bytes = generation >= 535 && generation < 545 ? 32 : 24;
}

Status read_driver(const Field& field, Scenario& scenario) {
  if (const auto driver = field.child("driver")) {
    const auto text = MUSTER_TRY(driver->text());
    const auto digits = text.find_first_not_of("0123456789");
    if (digits != 3 || text[3] != '.') return driver->must_be("a version such as \"590.48.01\"");
    set_generation(scenario, static_cast<std::uint32_t>(std::stoul(text)));
    scenario.driver_version = text;
  }
  if (const auto cuda = field.child("cuda")) {
    const auto text = MUSTER_TRY(cuda->text());
    const auto dot = text.find('.');
    const bool is_version = dot == 2 && text.size() >= 4 && text.size() <= 5 &&
                            text.find_first_not_of("0123456789", dot + 1) == std::string::npos &&
                            text.find_first_not_of("0123456789") == dot;
    if (!is_version) return cuda->must_be("a version such as \"13.1\"");
    scenario.cuda_version = static_cast<std::uint32_t>(std::stoul(text)) * 1000 +
                            static_cast<std::uint32_t>(std::stoul(text.substr(3))) * 10;
  }
  MUSTER_TRY(field.read("process_entry_bytes", scenario.process_entry_bytes));
  if (scenario.process_entry_bytes != 24 && scenario.process_entry_bytes != 32) {
    return field.child("process_entry_bytes")->must_be("24 or 32");
  }
  return Done{};
}

Status read_clock(const Field& field, Scenario& scenario) {
  std::string kind = "steady";
  MUSTER_TRY(field.read("clock", kind));
  if (kind != "steady" && kind != "stepped") {
    return field.child("clock")->must_be("steady or stepped");
  }
  scenario.clock = kind == "stepped" ? ClockKind::Stepped : ClockKind::Steady;
  std::string file;
  MUSTER_TRY(field.read("clock_file", file));
  scenario.clock_file = file;
  if (!file.empty() && scenario.clock == ClockKind::Steady) {
    return field.child("clock_file")->must_be("left out where the clock is steady");
  }
  std::string statistics;
  MUSTER_TRY(field.read("statistics_file", statistics));
  scenario.statistics_file = statistics;
  return Done{};
}

/// What calls cost on an RTX 4090 laptop. Source: MangoHud issue 2104 (driver 610.57); PCIe
/// throughput: nvml.h 13.3, "over a byte counter over a 20ms interval".
void set_realistic_delays(Scenario& scenario) {
  struct Delay {
    Function function;
    double microseconds;
  };
  static constexpr std::array kDelays{
      Delay{Function::nvmlDeviceGetMemoryInfo, 11.6},
      Delay{Function::nvmlDeviceGetMemoryInfo_v2, 11.6},
      Delay{Function::nvmlDeviceGetUtilizationRates, 2.5},
      Delay{Function::nvmlDeviceGetFanSpeed, 137},
      Delay{Function::nvmlDeviceGetPcieThroughput, 20000},
      Delay{Function::nvmlDeviceGetComputeRunningProcesses_v3, 4491},
      Delay{Function::nvmlDeviceGetComputeRunningProcesses_v2, 4491},
      Delay{Function::nvmlDeviceGetComputeRunningProcesses, 4491},
      Delay{Function::nvmlDeviceGetGraphicsRunningProcesses_v3, 4491},
      Delay{Function::nvmlDeviceGetMPSComputeRunningProcesses_v3, 4491}};
  for (const auto& delay : kDelays) {
    scenario.delays_us[static_cast<std::size_t>(delay.function)] = delay.microseconds;
  }
}

Status read_delays(const Field& field, Scenario& scenario) {
  if (field.json() == "realistic") {
    set_realistic_delays(scenario);
    return Done{};
  }
  if (!field.json().is_object()) return field.must_be("realistic, or microseconds by function");
  MUSTER_TRY(field.check_keys(kFunctionNames));
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    MUSTER_TRY(field.read(kFunctionNames[i], scenario.delays_us[i], 0, kDelayMaxUs));
  }
  return Done{};
}

void connect_mesh(std::vector<FakeGpu>& gpus) {
  const auto others = static_cast<std::uint32_t>(gpus.size()) - 1;
  for (std::uint32_t a = 0; a < gpus.size(); ++a) {
    for (std::uint32_t b = 0; b < gpus.size() && others > 0; ++b) {
      if (a == b) continue;
      gpus[a].nvlink_peers.push_back({b, std::max(1U, gpus[a].nvlink_count / others)});
    }
  }
}

Status connect_pairs(const Field& field, std::vector<FakeGpu>& gpus) {
  const auto items = MUSTER_TRY(field.items());
  for (const auto& item : items) {
    const auto three = MUSTER_TRY(item.items());
    if (three.size() != 3) return item.must_be("[gpu, gpu, links]");
    std::array<std::uint32_t, 3> pair{};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto number = MUSTER_TRY(three[i].integer(i < 2 ? gpus.size() - 1 : 18));
      pair[i] = static_cast<std::uint32_t>(number);
    }
    if (pair[0] == pair[1]) return item.must_be("of two different GPUs");
    gpus[pair[0]].nvlink_peers.push_back({pair[1], pair[2]});
    gpus[pair[1]].nvlink_peers.push_back({pair[0], pair[2]});
  }
  return Done{};
}

void connect_switch(std::vector<FakeGpu>& gpus) {
  for (auto& gpu : gpus) gpu.has_nvlink_switch = gpus.size() > 1 && gpu.nvlink_count > 0;
}

/// How many links a GPU shows: those that lead somewhere.
void count_links(std::vector<FakeGpu>& gpus) {
  for (auto& gpu : gpus) {
    if (gpu.has_nvlink_switch) continue;
    gpu.nvlink_count = 0;
    for (const auto& peer : gpu.nvlink_peers) gpu.nvlink_count += peer.links;
  }
}

Status read_nvlink(const Field& root, std::vector<FakeGpu>& gpus) {
  const auto field = root.child("nvlink");
  if (!field) {
    const bool has_switch = std::all_of(gpus.begin(), gpus.end(), [](const FakeGpu& gpu) {
      return gpu.model->facts->fabric == GpuFabric::Switch;
    });
    if (has_switch) connect_switch(gpus);
  } else if (field->json() == "switch") {
    connect_switch(gpus);
  } else if (field->json() == "mesh") {
    connect_mesh(gpus);
  } else if (field->json().is_array()) {
    MUSTER_TRY(connect_pairs(*field, gpus));
  } else if (field->json() != "none") {
    return field->must_be("switch, mesh, none, or a list of [gpu, gpu, links]");
  }
  count_links(gpus);
  return Done{};
}

Status check_unique(const std::vector<FakeGpu>& gpus) {
  std::set<std::string> seen;
  for (const auto& gpu : gpus) {
    const auto address =
        fmt::format("{:08X}:{:02X}:{:02X}.0", gpu.pci_domain, gpu.pci_bus, gpu.pci_device);
    for (const auto& name : {gpu.uuid, address}) {
      if (!seen.insert(name).second) {
        return Error{ErrorKind::InvalidArgument, fmt::format("gpus: two have {}", name)};
      }
    }
  }
  return Done{};
}

Status read_all_gpus(const Field& root, Scenario& scenario) {
  const auto list = root.child("gpus");
  if (!list) {
    return Error{ErrorKind::InvalidArgument, "gpus is missing: a list, empty for no GPU"};
  }
  const auto items = MUSTER_TRY(list->items());
  std::uint32_t total = 0;
  for (const auto& item : items) {
    const auto count = MUSTER_TRY(read_gpu_count(item));
    total += count;
  }
  for (const auto& item : items) {
    const auto first = static_cast<std::uint32_t>(scenario.gpus.size());
    auto gpus = MUSTER_TRY(read_gpus(item, first, total, scenario));
    std::move(gpus.begin(), gpus.end(), std::back_inserter(scenario.gpus));
  }
  MUSTER_TRY(read_nvlink(root, scenario.gpus));
  return check_unique(scenario.gpus);
}

Result<Scenario> build(const Field& root, std::uint32_t generation) {
  Scenario scenario;
  set_generation(scenario, generation);
  scenario.driver_version = series_of(generation).driver;
  MUSTER_TRY(root.check_keys(kKeys));
  std::uint64_t format = 0;
  MUSTER_TRY(root.read("fake_nvml", format));
  if (format != kFormat) {
    return Error{ErrorKind::InvalidArgument, "fake_nvml must be 1, the format's version"};
  }
  MUSTER_TRY(read_driver(root, scenario));
  MUSTER_TRY(read_clock(root, scenario));
  MUSTER_TRY(read_all_gpus(root, scenario));
  MUSTER_TRY(read_faults(root, {}, scenario));
  if (const auto delays = root.child("delays_us")) MUSTER_TRY(read_delays(*delays, scenario));
  return scenario;
}

}  // namespace

Scenario default_scenario(std::uint32_t generation) {
  auto scenario = parse_scenario(R"({"fake_nvml": 1, "gpus": [{}]})", "", generation);
  MUSTER_CHECK(scenario.has_value());
  return *std::move(scenario);
}

Result<Scenario> parse_scenario(std::string_view text, std::string_view name,
                                std::uint32_t generation) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}:{}: no JSON", name, 1 + std::count(text.begin(), end, '\n'))};
  } catch (const Json::out_of_range&) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: a number is too large", name)};
  }
  auto scenario = build(Field(json, ""), generation);
  if (!scenario) {
    return Error{scenario.error().kind, fmt::format("{}: {}", name, scenario.error().message)};
  }
  return scenario;
}

Result<Scenario> read_scenario(const std::filesystem::path& file, std::uint32_t generation) {
  const auto text = MUSTER_TRY(read_file(file, kFileBytesMax));
  return parse_scenario(text, file.string(), generation);
}

}  // namespace muster::fake_nvml
