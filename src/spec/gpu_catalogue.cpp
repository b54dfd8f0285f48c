// Facts about GPU types from their data sheets. What a sheet does not state stays absent; plans
// then say what they could not know.

#include "spec/gpu_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::uint64_t mib(std::uint64_t count) { return count << 20; }
constexpr std::uint64_t gb(std::uint64_t count) { return count * 1'000'000'000; }
constexpr double tera(double value) { return value * 1e12; }
constexpr double giga(double value) { return value * 1e9; }
constexpr std::nullopt_t kAbsent = std::nullopt;

// NVLink as NCCL counts a link: Pascal, Volta and A100, the other Ampere cards, Hopper, Blackwell.
constexpr double kSm60 = 18e9;
constexpr double kSm70 = 20e9;
constexpr double kSm80 = 20e9;
constexpr double kSm86 = 12e9;
constexpr double kSm90 = 20.6e9;
constexpr double kSm100 = 40.1e9;
// Turing's cards: NCCL counts sm75 as sm70.
constexpr double kSm75 = kSm70;
// Infinity Fabric: half of what the data sheets state for both directions of a link.
constexpr double kFabric2 = 50e9;
constexpr double kFabric3 = 64e9;

constexpr auto kCuda = DeviceKind::Cuda;
constexpr auto kRocm = DeviceKind::Rocm;
constexpr auto kNone = GpuFabric::None;
constexpr auto kBridges = GpuFabric::Bridges;
constexpr auto kMesh = GpuFabric::Mesh;
constexpr auto kSwitch = GpuFabric::Switch;

constexpr std::string_view kTuringPaper =
    "NVIDIA Turing GPU Architecture white paper WP-09183-001, 2018";
constexpr std::string_view kGa102Paper = "NVIDIA Ampere GA102 GPU Architecture white paper, 2021";
constexpr std::string_view kAdaPaper = "NVIDIA Ada GPU Architecture white paper v2.01, 2023";
constexpr std::string_view kRtxBlackwellPaper =
    "NVIDIA RTX Blackwell GPU Architecture white paper v1.1, 2025";
constexpr std::string_view kV100Sheet = "NVIDIA V100 Tensor Core GPU data sheet, January 2020";
constexpr std::string_view kA100Sheet = "NVIDIA A100 Tensor Core GPU data sheet, June 2021";
constexpr std::string_view kH100Sheet = "NVIDIA H100 Tensor Core GPU data sheet, 2023";
constexpr std::string_view kH200Sheet = "NVIDIA H200 Tensor Core GPU data sheet, 2024";

// Where a sheet states products with sparsity only, half of it is the dense figure.
// clang-format off
constexpr std::array kGpus{
    GpuFacts{"P100-16G", "Tesla P100-SXM2-16GB", kCuda, gb(16), tera(21.2), giga(732), kBridges, 4, kSm60, 3,
             "NVIDIA Tesla P100 data sheet, October 2016"},
    GpuFacts{"P40-24G", "Tesla P40", kCuda, gb(24), kAbsent, giga(346), kNone, 0, 0.0, 3,
             "NVIDIA Tesla P40 data sheet, 2016"},
    GpuFacts{"V100-16G", "Tesla V100-SXM2-16GB", kCuda, mib(16160), tera(125), giga(900), kBridges, 6, kSm70, 3, kV100Sheet},
    GpuFacts{"V100-32G", "Tesla V100-SXM2-32GB", kCuda, mib(32510), tera(125), giga(900), kBridges, 6, kSm70, 3, kV100Sheet},
    GpuFacts{"V100-PCIE-16G", "Tesla V100-PCIE-16GB", kCuda, mib(16160), tera(112), giga(900), kNone, 0, 0.0, 3, kV100Sheet},
    GpuFacts{"V100-PCIE-32G", "Tesla V100-PCIE-32GB", kCuda, mib(32510), tera(112), giga(900), kNone, 0, 0.0, 3, kV100Sheet},
    GpuFacts{"T4-16G", "Tesla T4", kCuda, mib(15360), tera(65), giga(320), kNone, 0, 0.0, 3, kTuringPaper},
    GpuFacts{"RTX2080TI-11G", "NVIDIA GeForce RTX 2080 Ti", kCuda, gb(11), tera(53.8), giga(616), kBridges, 2, kSm75, 3, kTuringPaper},
    GpuFacts{"RTX8000-48G", "Quadro RTX 8000", kCuda, gb(48), tera(130.5), giga(672), kBridges, 2, kSm75, 3, kTuringPaper},
    GpuFacts{"A10-24G", "NVIDIA A10", kCuda, mib(23028), tera(125), giga(600), kNone, 0, 0.0, 4,
             "NVIDIA A10 Tensor Core GPU data sheet, March 2022"},
    GpuFacts{"A10G-24G", "NVIDIA A10G", kCuda, mib(23028), tera(70), giga(600), kNone, 0, 0.0, 4,
             "NVIDIA A10G Tensor Core GPU data sheet, 2021"},
    GpuFacts{"A30-24G", "NVIDIA A30", kCuda, mib(24576), tera(165), giga(933), kBridges, 4, kSm80, 4,
             "NVIDIA A30 Tensor Core GPU data sheet, March 2022"},
    GpuFacts{"A40-48G", "NVIDIA A40", kCuda, mib(46068), tera(149.7), giga(696), kBridges, 4, kSm86, 4,
             "NVIDIA A40 data sheet, 2022"},
    GpuFacts{"A100-40G", "NVIDIA A100-SXM4-40GB", kCuda, mib(40536), tera(312), giga(1555), kSwitch, 12, kSm80, 4, kA100Sheet},
    GpuFacts{"A100-80G", "NVIDIA A100-SXM4-80GB", kCuda, mib(81920), tera(312), giga(2039), kSwitch, 12, kSm80, 4, kA100Sheet},
    GpuFacts{"A100-PCIE-40G", "NVIDIA A100-PCIE-40GB", kCuda, mib(40536), tera(312), giga(1555), kBridges, 12, kSm80, 4, kA100Sheet},
    GpuFacts{"A100-PCIE-80G", "NVIDIA A100 80GB PCIe", kCuda, mib(81920), tera(312), giga(1935), kBridges, 12, kSm80, 4, kA100Sheet},
    GpuFacts{"RTX3080-10G", "NVIDIA GeForce RTX 3080", kCuda, gb(10), tera(59.5), giga(760), kNone, 0, 0.0, 4, kGa102Paper},
    GpuFacts{"RTX3090-24G", "NVIDIA GeForce RTX 3090", kCuda, mib(24576), tera(71), giga(936), kBridges, 4, kSm86, 4, kGa102Paper},
    GpuFacts{"RTXA5000-24G", "NVIDIA RTX A5000", kCuda, gb(24), tera(111.1), giga(768), kBridges, 4, kSm86, 4,
             "NVIDIA RTX A5000 data sheet, 2021"},
    GpuFacts{"RTXA6000-48G", "NVIDIA RTX A6000", kCuda, mib(49140), tera(154.8), giga(768), kBridges, 4, kSm86, 4, kGa102Paper},
    GpuFacts{"L4-24G", "NVIDIA L4", kCuda, mib(23034), tera(121), giga(300), kNone, 0, 0.0, 4,
             "NVIDIA L4 Tensor Core GPU data sheet, 2023"},
    GpuFacts{"L40-48G", "NVIDIA L40", kCuda, mib(46068), tera(181.05), giga(864), kNone, 0, 0.0, 4,
             "NVIDIA L40 data sheet, 2023"},
    GpuFacts{"L40S-48G", "NVIDIA L40S", kCuda, mib(46068), tera(362.05), giga(864), kNone, 0, 0.0, 4,
             "NVIDIA L40S data sheet, 2023"},
    GpuFacts{"RTX4080-16G", "NVIDIA GeForce RTX 4080", kCuda, gb(16), tera(97.5), giga(716.8), kNone, 0, 0.0, 4, kAdaPaper},
    GpuFacts{"RTX4090-24G", "NVIDIA GeForce RTX 4090", kCuda, mib(24564), tera(165.2), giga(1008), kNone, 0, 0.0, 4, kAdaPaper},
    GpuFacts{"RTX6000ADA-48G", "NVIDIA RTX 6000 Ada Generation", kCuda, mib(49140), tera(364.2), giga(960), kNone, 0, 0.0, 4, kAdaPaper},
    GpuFacts{"H100-80G", "NVIDIA H100 80GB HBM3", kCuda, mib(81559), tera(989.5), giga(3350), kSwitch, 18, kSm90, 5, kH100Sheet},
    GpuFacts{"H100-PCIE-80G", "NVIDIA H100 PCIe", kCuda, mib(81559), tera(756.5), giga(2000), kBridges, 12, kSm90, 5, kH100Sheet},
    GpuFacts{"H100-NVL-94G", "NVIDIA H100 NVL", kCuda, mib(95830), tera(835.5), giga(3900), kBridges, 12, kSm90, 5,
             "NVIDIA H100 Tensor Core GPU data sheet, 2024"},
    GpuFacts{"H200-141G", "NVIDIA H200", kCuda, mib(143771), tera(989.5), giga(4800), kSwitch, 18, kSm90, 5, kH200Sheet},
    GpuFacts{"H200-NVL-141G", "NVIDIA H200 NVL", kCuda, mib(143771), tera(835.5), giga(4800), kBridges, 18, kSm90, 5, kH200Sheet},
    GpuFacts{"B200-180G", "NVIDIA B200", kCuda, mib(183359), tera(2250), giga(8000), kSwitch, 18, kSm100, 5,
             "NVIDIA HGX platform data sheet, 2025"},
    GpuFacts{"RTX5080-16G", "NVIDIA GeForce RTX 5080", kCuda, gb(16), tera(112.6), giga(960), kNone, 0, 0.0, 5, kRtxBlackwellPaper},
    GpuFacts{"RTX5090-32G", "NVIDIA GeForce RTX 5090", kCuda, mib(32607), tera(209.5), giga(1792), kNone, 0, 0.0, 5, kRtxBlackwellPaper},
    GpuFacts{"RTXPRO6000-96G", "NVIDIA RTX PRO 6000 Blackwell Server Edition", kCuda, mib(97887), kAbsent, giga(1597), kNone, 0, 0.0, 5,
             "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet, 2025"},
    GpuFacts{"MI210-64G", "AMD Instinct MI210", kRocm, gb(64), tera(181), giga(1638.4), kBridges, 3, kFabric2, 4,
             "AMD Instinct MI210 data sheet, 2022"},
    // One of the two dies of the module, as the driver shows it: half of what the sheet states; how
    // its links divide between the dies the sheet does not say.
    GpuFacts{"MI250X-64G", "AMD Instinct MI250X", kRocm, gb(64), tera(191.5), giga(1638.4), kBridges, 0, 0.0, 4,
             "AMD Instinct MI250X data sheet, 2021"},
    GpuFacts{"MI300X-192G", "AMD Instinct MI300X", kRocm, 205822885888, tera(1307.4), giga(5300), kMesh, 7, kFabric3, 5,
             "AMD Instinct MI300X data sheet, 2023"},
    GpuFacts{"MI325X-256G", "AMD Instinct MI325X", kRocm, gb(256), tera(1307.4), giga(6000), kMesh, 7, kFabric3, 5,
             "AMD Instinct MI325X data sheet, 2024"},
    GpuFacts{"RX7900XTX-24G", "AMD Radeon RX 7900 XTX", kRocm, gb(24), kAbsent, giga(960), kNone, 0, 0.0, 4,
             "AMD Radeon RX 7900 XTX product page, 2022"},
};
// clang-format on

// "H100-80GB", "h100_80g" and "H100 80G" are one name.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    text.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  if (text.size() > 2 && text.ends_with("GB")) text.pop_back();
  return text;
}

std::string_view without_memory(std::string_view name) { return name.substr(0, name.rfind('-')); }

// The memory is what people leave out or get wrong, so the rest counts by itself too.
const GpuFacts* nearest_gpu(const std::string& wanted, const std::vector<std::string>& names) {
  if (const auto name = nearest_name(wanted, names)) {
    const auto found = std::find(names.begin(), names.end(), *name);
    return &kGpus[static_cast<std::size_t>(found - names.begin())];
  }
  for (const auto& gpu : kGpus) {
    const auto stem = plain(without_memory(gpu.name));
    if (!wanted.empty() && (wanted.starts_with(stem) || stem.ends_with(wanted))) return &gpu;
  }
  return nullptr;
}

// What to say of a name that is none: the nearest one, those that begin so, or what names look
// like.
std::string hint_for(const std::string& wanted, const std::vector<std::string>& names) {
  if (const auto* nearest = nearest_gpu(wanted, names)) {
    return fmt::format(": did you mean {}?", nearest->name);
  }
  std::vector<std::string_view> longer;
  for (const auto& gpu : kGpus) {
    if (wanted.size() > 1 && plain(gpu.name).starts_with(wanted)) longer.push_back(gpu.name);
  }
  if (!longer.empty()) return fmt::format(": did you mean {}?", fmt::join(longer, " or "));
  return "; names are such as T4-16G, L4-24G, RTX4090-24G, A100-80G, H100-80G or MI300X-192G";
}

}  // namespace

std::span<const GpuFacts> gpu_catalogue() { return kGpus; }

Result<const GpuFacts*> find_gpu(std::string_view name) {
  const auto wanted = plain(name);
  std::vector<std::string> names;
  std::vector<const GpuFacts*> sizes;
  for (const auto& gpu : kGpus) {
    if (plain(gpu.name) == wanted) return &gpu;
    if (plain(without_memory(gpu.name)) == wanted) sizes.push_back(&gpu);
    names.push_back(plain(gpu.name));
  }
  if (sizes.size() == 1) return sizes.front();
  const std::string shown(name.substr(0, 60));
  if (sizes.size() > 1) {
    std::string choice;
    for (const auto* gpu : sizes) choice += (choice.empty() ? "" : " or ") + std::string(gpu->name);
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("the GPU is made with several sizes of memory: {}: write {}", shown, choice)};
  }
  return Error{ErrorKind::NotFound,
               fmt::format("no such GPU is known: {}{}", shown, hint_for(wanted, names))};
}

const GpuFacts* find_gpu_by_driver_name(std::string_view driver_name) {
  for (const auto& gpu : kGpus) {
    if (gpu.driver_name == driver_name) return &gpu;
  }
  return nullptr;
}

DeviceClass device_class(const GpuFacts& gpu) {
  return {std::string(gpu.name), gpu.kind, gpu.memory_bytes, gpu.flops_per_second,
          gpu.memory_bytes_per_second};
}

double pcie_bytes_per_second(std::uint32_t generation) {
  double bytes = kPcie3BytesPerSecond;
  for (std::uint32_t g = 3; g < generation; ++g) bytes *= 2.0;
  return bytes;
}

}  // namespace muster
