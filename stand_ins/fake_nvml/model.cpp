#include "fake_nvml/model.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/text.h"

namespace muster::fake_nvml {
namespace {

struct Row {
  std::string_view catalogue_name;
  Model model;
};

constexpr auto kVolta = Architecture::Volta;
constexpr auto kTuring = Architecture::Turing;
constexpr auto kAmpere = Architecture::Ampere;
constexpr auto kAda = Architecture::Ada;
constexpr auto kHopper = Architecture::Hopper;
constexpr auto kBlackwell = Architecture::Blackwell;
constexpr std::uint32_t device_id(std::uint32_t device) { return device << 16 | 0x10DE; }

// Source: multiprocessors, clocks and power limits: NVIDIA's data sheets and architecture white
// papers of each (named in spec/gpu_catalogue.cpp); H200: nvidia_gpu_exporter, its capture of an
// H200 with driver 590.48.01 (internal/integration/testdata); PCI device ids: pci.ids. Where
// nothing public states a lowest limit or an idle clock, it has the H200's share of the highest,
// rounded.
// clang-format off
const std::array rows_by_name{
    Row{"V100-16G", {nullptr, "V100-16G", kVolta, 70, 80, 300, 150, 1530, 135, 877, device_id(0x1DB1), true, false, false}},
    Row{"V100-32G", {nullptr, "V100-32G", kVolta, 70, 80, 300, 150, 1530, 135, 877, device_id(0x1DB5), true, false, false}},
    Row{"T4-16G", {nullptr, "T4", kTuring, 75, 40, 70, 60, 1590, 300, 5001, device_id(0x1EB8), false, false, false}},
    Row{"A10G-24G", {nullptr, "A10G", kAmpere, 86, 80, 300, 100, 1710, 210, 6251, device_id(0x2237), false, true, false}},
    Row{"A100-40G", {nullptr, "A100-40G", kAmpere, 80, 108, 400, 100, 1410, 210, 1215, device_id(0x20B0), true, true, false}},
    Row{"A100-80G", {nullptr, "A100-80G", kAmpere, 80, 108, 400, 100, 1410, 210, 1593, device_id(0x20B2), true, true, false}},
    Row{"RTX4090-24G", {nullptr, "RTX4090", kAda, 89, 128, 450, 150, 2520, 210, 10501, device_id(0x2684), false, false, true}},
    Row{"L4-24G", {nullptr, "L4", kAda, 89, 58, 72, 40, 2040, 210, 6251, device_id(0x27B8), false, true, false}},
    Row{"L40S-48G", {nullptr, "L40S", kAda, 89, 142, 350, 100, 2520, 210, 9001, device_id(0x26B9), false, true, false}},
    Row{"H100-80G", {nullptr, "H100-80G", kHopper, 90, 132, 700, 200, 1980, 345, 2619, device_id(0x2330), true, true, false}},
    Row{"H200-141G", {nullptr, "H200", kHopper, 90, 132, 700, 200, 1980, 345, 3201, device_id(0x2335), true, true, false}},
    Row{"B200-180G", {nullptr, "B200", kBlackwell, 100, 148, 1000, 200, 1965, 120, 3996, device_id(0x2901), true, true, false}},
};
// clang-format on

std::vector<Model> all_models() {
  std::vector<Model> models;
  for (const auto& row : rows_by_name) {
    models.push_back(row.model);
    const auto facts = find_gpu(row.catalogue_name);
    MUSTER_CHECK(facts.has_value());
    models.back().facts = *facts;
  }
  return models;
}

}  // namespace

Result<const Model*> find_model(std::string_view name) {
  static const std::vector<Model> models = all_models();
  std::vector<std::string> names;
  for (const auto& model : models) {
    if (model.name == name || model.facts->name == name) return &model;
    names.emplace_back(model.name);
  }
  const auto nearest = nearest_name(name, names);
  return Error{ErrorKind::NotFound,
               fmt::format("no model {}: {}", name,
                           nearest ? "did you mean " + *nearest + "?"
                                   : fmt::format("{} are there", fmt::join(names, ", ")))};
}

}  // namespace muster::fake_nvml
