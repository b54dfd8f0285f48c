#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "fake_nvml/scenario_parts.h"

namespace muster::fake_nvml {
namespace {

constexpr std::uint32_t kGpusMax = 1024;
constexpr std::uint32_t kMigSlicesMax = 7;

constexpr std::array<std::string_view, 40> kGpuKeys{"model",
                                                    "count",
                                                    "name",
                                                    "uuid",
                                                    "serial",
                                                    "vbios",
                                                    "pci",
                                                    "minor_number",
                                                    "numa_node",
                                                    "host_bridge",
                                                    "pcie_tree",
                                                    "pcie_switch",
                                                    "memory_bytes",
                                                    "reserved_bytes",
                                                    "compute_mode",
                                                    "persistent",
                                                    "ecc",
                                                    "mig",
                                                    "unified_memory",
                                                    "load",
                                                    "activity",
                                                    "traffic",
                                                    "idle_watts",
                                                    "load_watts",
                                                    "refresh_phase_s",
                                                    "energy_joules",
                                                    "energy_resets",
                                                    "energy_missing",
                                                    "values",
                                                    "throttle",
                                                    "processes",
                                                    "xids",
                                                    "events",
                                                    "lost",
                                                    "hang",
                                                    "crash",
                                                    "errors",
                                                    "field_errors",
                                                    "field_delays_us",
                                                    "temperature_lag_s"};

// The capture of an H200: 77.7 W idle, 627.4 W under load, of a limit of 700 W. Other models have
// the same shares of theirs. Source: nvidia_gpu_exporter, testdata, driver 590.48.01.
constexpr double kIdleShare = 77.7 / 700;
constexpr double kLoadShare = 627.4 / 700;
constexpr std::uint64_t kH200Reserved = 643'825'664;
// Bytes that the driver keeps for itself, in the proportion of the H200's, in whole MiB.
std::uint64_t reserved_bytes(std::uint64_t memory) {
  constexpr std::uint64_t kH200Memory = 150'754'820'096;
  if (memory == kH200Memory) return kH200Reserved;
  const double share = static_cast<double>(kH200Reserved) / static_cast<double>(kH200Memory);
  return static_cast<std::uint64_t>(static_cast<double>(memory) * share) >> 20 << 20;
}

// A training step that is bound by matrix products: the stand-in's own shares, not a measurement.
constexpr std::array<double, kActivityCount> kActivity{0.5, 0.95, 0.35, 0.7, 0,    0.7, 0,
                                                       0,   0.45, 0,    0.1, 0.05, 0.1};

/// "00000000:1B:00.0".
Status read_pci(const Field& field, FakeGpu& gpu) {
  const auto text = MUSTER_TRY(field.text());
  const auto number = [&](std::size_t first, std::size_t length, std::uint32_t& out) {
    const char* begin = text.data() + first;
    const auto result = std::from_chars(begin, begin + length, out, 16);
    return result.ec == std::errc() && result.ptr == begin + length;
  };
  if (text.size() != 16 || text[8] != ':' || text[11] != ':' || text.substr(14) != ".0" ||
      !number(0, 8, gpu.pci_domain) || !number(9, 2, gpu.pci_bus) ||
      !number(12, 2, gpu.pci_device)) {
    return field.must_be("an address such as 00000000:1B:00.0");
  }
  return Done{};
}

Status read_place(const Field& field, FakeGpu& gpu) {
  MUSTER_TRY(field.read("minor_number", gpu.minor_number));
  MUSTER_TRY(field.read("numa_node", gpu.numa_node));
  MUSTER_TRY(field.read("host_bridge", gpu.host_bridge));
  MUSTER_TRY(field.read("pcie_tree", gpu.pcie_tree));
  MUSTER_TRY(field.read("pcie_switch", gpu.pcie_switch));
  if (const auto pci = field.child("pci")) MUSTER_TRY(read_pci(*pci, gpu));
  return Done{};
}

Status read_identity(const Field& field, FakeGpu& gpu) {
  MUSTER_TRY(field.read("name", gpu.name));
  MUSTER_TRY(field.read("uuid", gpu.uuid));
  MUSTER_TRY(field.read("serial", gpu.serial));
  MUSTER_TRY(field.read("vbios", gpu.vbios));
  MUSTER_TRY(field.read("memory_bytes", gpu.memory_bytes));
  if (field.child("memory_bytes")) gpu.memory_reserved_bytes = reserved_bytes(gpu.memory_bytes);
  MUSTER_TRY(field.read("reserved_bytes", gpu.memory_reserved_bytes));
  MUSTER_TRY(field.read("compute_mode", gpu.compute_mode));
  MUSTER_TRY(field.read("persistent", gpu.is_persistent));
  MUSTER_TRY(field.read("unified_memory", gpu.shares_host_memory));
  if (const auto ecc = field.child("ecc")) {
    if (ecc->json().is_null()) {
      gpu.is_ecc_on.reset();
    } else {
      gpu.is_ecc_on = MUSTER_TRY(ecc->boolean());
    }
  }
  return Done{};
}

Status read_load(const Field& field, FakeGpu& gpu) {
  if (const auto load = field.child("load")) gpu.load = MUSTER_TRY(read_curve(*load, 0, 1));
  if (const auto activity = field.child("activity")) {
    MUSTER_TRY(activity->check_keys(kActivityNames));
    for (std::size_t i = 0; i < kActivityCount; ++i) {
      MUSTER_TRY(activity->read(kActivityNames[i], gpu.activity[i], 0, 1));
    }
  }
  if (const auto traffic = field.child("traffic")) {
    static constexpr std::array<std::string_view, 4> kKeys{"pcie_sent", "pcie_received",
                                                           "nvlink_sent", "nvlink_received"};
    MUSTER_TRY(traffic->check_keys(kKeys));
    MUSTER_TRY(traffic->read("pcie_sent", gpu.traffic.pcie_sent));
    MUSTER_TRY(traffic->read("pcie_received", gpu.traffic.pcie_received));
    MUSTER_TRY(traffic->read("nvlink_sent", gpu.traffic.nvlink_sent));
    MUSTER_TRY(traffic->read("nvlink_received", gpu.traffic.nvlink_received));
  }
  MUSTER_TRY(field.read("idle_watts", gpu.idle_watts));
  MUSTER_TRY(field.read("load_watts", gpu.load_watts));
  MUSTER_TRY(field.read("temperature_lag_s", gpu.temperature_lag_s, 1e-3));
  double phase = 0;
  MUSTER_TRY(field.read("refresh_phase_s", phase, 0, 0.1));
  gpu.refresh_phase_ns = std::llround(phase * 1e9);
  return Done{};
}

Status read_energy(const Field& field, FakeGpu& gpu) {
  MUSTER_TRY(field.read("energy_joules", gpu.energy_start_joules));
  if (const auto missing = field.child("energy_missing")) {
    static constexpr std::array<std::string_view, 2> kKeys{"from", "until"};
    MUSTER_TRY(missing->check_keys(kKeys));
    gpu.energy_missing = MUSTER_TRY(read_span(*missing));
  }
  if (const auto resets = field.child("energy_resets")) {
    const auto items = MUSTER_TRY(resets->items());
    for (const auto& item : items) {
      const double at = MUSTER_TRY(item.number(0));
      gpu.energy_resets.push_back(at);
    }
    std::sort(gpu.energy_resets.begin(), gpu.energy_resets.end());
  }
  return Done{};
}

Status read_values(const Field& field, FakeGpu& gpu) {
  MUSTER_TRY(field.check_keys(kValueNames));
  for (std::size_t i = 0; i < kValueCount; ++i) {
    const auto value = field.child(kValueNames[i]);
    if (!value) continue;
    gpu.values[i] = {};
    if (value->json().is_null()) {
      gpu.values[i].is_absent = true;
    } else {
      gpu.values[i].curve = MUSTER_TRY(read_curve(*value, 0, 1e18));
    }
  }
  return Done{};
}

std::string default_uuid(std::uint32_t index) {
  return fmt::format("GPU-{:08x}-6d75-4374-8000-{:012x}", 0x5EED0000 + index, index);
}

Status check_single(const Field& field, std::uint32_t count) {
  if (count == 1) return Done{};
  for (const auto key : {"uuid", "serial", "pci", "minor_number"}) {
    if (const auto own = field.child(key)) return own->must_be("left out where count is not 1");
  }
  return Done{};
}

/// "1g.18gb": slices of seven, and memory.
bool read_profile(const Model& model, MigSlice& slice) {
  const char* const end = slice.profile.data() + slice.profile.size();
  const auto slices = std::from_chars(slice.profile.data(), end, slice.slices);
  if (slices.ec != std::errc() || slice.slices < 1 || slice.slices > kMigSlicesMax) return false;
  if (!std::string_view(slices.ptr, end).starts_with("g.")) return false;
  std::uint32_t gigabytes = 0;
  const auto memory = std::from_chars(slices.ptr + 2, end, gigabytes);
  if (memory.ec != std::errc() || std::string_view(memory.ptr, end) != "gb") return false;
  slice.memory_bytes = std::uint64_t{gigabytes} << 30;
  // One eighth of the multiprocessors each: A100's 14 of 108, H100's 16 of 132.
  slice.multiprocessor_count = model.multiprocessor_count / 8 * slice.slices;
  return true;
}

Result<MigSlice> read_slice(const Field& field, const FakeGpu& gpu, std::uint32_t position) {
  static constexpr std::array<std::string_view, 6> kKeys{
      "profile", "index", "uuid", "gpu_instance", "compute_instance", "load"};
  MUSTER_TRY(field.check_keys(kKeys));
  MigSlice slice;
  slice.index = position;
  MUSTER_TRY(field.read("index", slice.index));
  slice.gpu_instance = slice.index + kMigSlicesMax;
  slice.profile = "1g.10gb";
  MUSTER_TRY(field.read("profile", slice.profile));
  MUSTER_TRY(field.read("gpu_instance", slice.gpu_instance));
  MUSTER_TRY(field.read("compute_instance", slice.compute_instance));
  slice.uuid = fmt::format("MIG-{:08x}-6d75-5374-8000-{:012x}", 0x5EED0000 + slice.index,
                           gpu.minor_number * 16 + slice.index);
  MUSTER_TRY(field.read("uuid", slice.uuid));
  if (slice.index >= kMigSlicesMax || !read_profile(*gpu.model, slice)) {
    return field.must_be("a slice with an index up to 6 and a profile such as 1g.18gb");
  }
  if (const auto load = field.child("load")) slice.load = MUSTER_TRY(read_curve(*load, 0, 1));
  return slice;
}

}  // namespace

FakeGpu default_gpu(const Model& model, std::uint32_t index, std::uint32_t total) {
  // The buses of an HGX board of 8; a board more is a PCI domain more.
  static constexpr std::array<std::uint32_t, 8> kBuses{0x1B, 0x43, 0x52, 0x61,
                                                       0x9D, 0xC3, 0xD1, 0xDF};
  FakeGpu gpu;
  gpu.model = &model;
  gpu.name = model.facts->driver_name;
  gpu.uuid = default_uuid(index);
  gpu.serial = fmt::format("{}", 1650000000000 + index);
  gpu.pci_domain = index / 8;
  gpu.pci_bus = kBuses[index % 8];
  gpu.minor_number = index;
  gpu.numa_node = total < 2 ? 0 : index * 2 / total;
  gpu.host_bridge = index / 2;
  gpu.pcie_tree = index / 2;
  gpu.pcie_switch = index / 2;
  gpu.memory_bytes = model.facts->memory_bytes;
  gpu.memory_reserved_bytes = reserved_bytes(gpu.memory_bytes);
  gpu.activity = kActivity;
  gpu.idle_watts = kIdleShare * model.power_limit_watts;
  gpu.load_watts = kLoadShare * model.power_limit_watts;
  gpu.nvlink_count = model.facts->link_count;
  if (model.has_fan) gpu.is_ecc_on = false;  // GeForce
  return gpu;
}

Result<std::uint32_t> read_gpu_count(const Field& field) {
  if (!field.json().is_object()) return field.must_be("an object");
  std::uint32_t count = 1;
  MUSTER_TRY(field.read("count", count));
  if (count < 1 || count > kGpusMax) {
    return field.child("count")->must_be(fmt::format("from 1 to {}", kGpusMax));
  }
  return count;
}

Result<std::vector<FakeGpu>> read_gpus(const Field& field, std::uint32_t first, std::uint32_t total,
                                       Scenario& scenario) {
  MUSTER_TRY(field.check_keys(kGpuKeys));
  const auto count = MUSTER_TRY(read_gpu_count(field));
  MUSTER_TRY(check_single(field, count));
  std::string model_name = "H200";
  MUSTER_TRY(field.read("model", model_name));
  const auto model = find_model(model_name);
  if (!model) {
    return Error{model.error().kind,
                 fmt::format("{}.model: {}", field.place(), model.error().message)};
  }
  std::vector<FakeGpu> gpus;
  std::vector<std::uint32_t> indices;
  for (std::uint32_t index = first; index < first + count; ++index) {
    FakeGpu gpu = default_gpu(**model, index, total);
    MUSTER_TRY(read_identity(field, gpu));
    MUSTER_TRY(read_place(field, gpu));
    MUSTER_TRY(read_load(field, gpu));
    MUSTER_TRY(read_energy(field, gpu));
    if (const auto values = field.child("values")) MUSTER_TRY(read_values(*values, gpu));
    if (const auto mig = field.child("mig")) gpu.mig = MUSTER_TRY(read_mig(*mig, gpu));
    MUSTER_TRY(read_happenings(field, gpu));
    indices.push_back(index);
    gpus.push_back(std::move(gpu));
  }
  MUSTER_TRY(read_faults(field, indices, scenario));
  return gpus;
}

Result<std::vector<MigSlice>> read_mig(const Field& field, const FakeGpu& gpu) {
  // A100, H100, H200, B200: the large chips alone.
  if (gpu.model->compute_capability % 10 != 0 || gpu.model->compute_capability < 80) {
    return field.must_be(fmt::format("left out: {} has no MIG", gpu.model->name));
  }
  std::vector<MigSlice> slices;
  const auto items = MUSTER_TRY(field.items());
  for (const auto& item : items) {
    const auto position = static_cast<std::uint32_t>(slices.size());
    auto slice = MUSTER_TRY(read_slice(item, gpu, position));
    slices.push_back(std::move(slice));
  }
  return slices;
}

}  // namespace muster::fake_nvml
