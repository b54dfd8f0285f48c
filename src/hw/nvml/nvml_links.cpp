// Joins what each GPU says of its own NVLinks into a matrix. A link leads to a GPU, found by its
// PCI place, or to a switch; behind a switch every GPU reaches every other one, with as many links
// as the poorer end has. Both ends should agree on direct links; where one does not answer, the
// other end's count holds. Everything else is PCIe, by the nearest common ancestor.

#include "hw/nvml/nvml_links.h"

#include <algorithm>

#include "hw/nvml/nvml_fields.h"

namespace muster {
namespace {

// How many links of one GPU go where.
struct LinkCounts {
  std::vector<std::uint32_t> to_gpu;
  std::uint32_t to_switch = 0;
};

bool is_same_place(const NvmlPciInfo& a, const NvmlPciInfo& b) {
  return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

LinkCounts count_links(const std::vector<NvmlGpu>& gpus, const std::vector<NvmlLinkEnd>& ends) {
  LinkCounts counts{std::vector<std::uint32_t>(gpus.size()), 0};
  for (const auto& end : ends) {
    const auto peer = std::find_if(gpus.begin(), gpus.end(), [&](const NvmlGpu& gpu) {
      return end.place && gpu.pci && is_same_place(*gpu.pci, *end.place);
    });
    if (peer != gpus.end()) {
      ++counts.to_gpu[static_cast<std::size_t>(peer - gpus.begin())];
    } else if (end.is_switch) {
      ++counts.to_switch;
    }
  }
  return counts;
}

// nvmlGpuTopologyLevel_t.
LinkKind kind_of_level(unsigned level) {
  switch (level) {
    case 0:  // two GPUs on one board have a switch of their own
    case 10:
      return LinkKind::Pix;
    case 20:
      return LinkKind::Pxb;
    case 30:
      return LinkKind::Phb;
    case 40:
      return LinkKind::Node;
    default:
      return LinkKind::Sys;
  }
}

}  // namespace

unsigned nvlink_count(const NvmlFunctions& nvml, NvmlDevice device, NvmlCaller& call) {
  if (device == nullptr) return 0;
  constexpr std::uint32_t kFieldLinkCount = 91;  // NVML_FI_DEV_NVLINK_LINK_COUNT
  NvmlFieldValue value{};
  value.field = kFieldLinkCount;
  value.code = kNvmlUnknown;
  if (call(nvml.field_values, device, 1, &value) == kNvmlSuccess && value.code == kNvmlSuccess) {
    const auto count = nvml_number(value);
    if (count && *count >= 0 && *count <= kNvmlLinkMax) return static_cast<unsigned>(*count);
  }
  // Beyond the last link the state is an invalid argument.
  unsigned count = 0;
  unsigned is_active = 0;
  while (count < kNvmlLinkMax && call(nvml.link_state, device, count, &is_active) == kNvmlSuccess) {
    ++count;
  }
  return count;
}

std::vector<NvmlLinkEnd> read_link_ends(const NvmlFunctions& nvml, NvmlDevice device,
                                        unsigned link_count, NvmlCaller& call) {
  std::vector<NvmlLinkEnd> ends;
  for (unsigned link = 0; link < link_count; ++link) {
    unsigned is_active = 0;
    if (call(nvml.link_state, device, link, &is_active) != kNvmlSuccess || is_active == 0) continue;
    NvmlLinkEnd end;
    NvmlPciInfo place{};
    if (call(nvml.link_remote_pci, device, link, &place) == kNvmlSuccess) end.place = place;
    unsigned type = kNvmlLinkToGpu;
    end.is_switch = call(nvml.link_remote_type, device, link, &type) == kNvmlSuccess &&
                    type == kNvmlLinkToSwitch;
    ends.push_back(end);
  }
  return ends;
}

LinkMatrix join_nvml_links(const NvmlFunctions& nvml, const std::vector<NvmlGpu>& gpus,
                           const std::vector<std::vector<NvmlLinkEnd>>& link_ends,
                           NvmlCaller& call) {
  const auto count = gpus.size();
  std::vector<LinkCounts> counts;
  for (const auto& ends : link_ends) counts.push_back(count_links(gpus, ends));
  LinkMatrix links;
  links.device_count = static_cast<std::uint32_t>(count);
  links.labels.resize(count * count);
  for (std::size_t a = 0; a < count; ++a) {
    links.labels[a * count + a].kind = LinkKind::Self;
    for (std::size_t b = a + 1; b < count; ++b) {
      LinkLabel label;
      label.width = std::max(counts[a].to_gpu[b], counts[b].to_gpu[a]) +
                    std::min(counts[a].to_switch, counts[b].to_switch);
      unsigned level = 0;
      if (label.width > 0) {
        label.kind = LinkKind::NvLink;
      } else if (gpus[a].handle != nullptr && gpus[b].handle != nullptr &&
                 call(nvml.common_ancestor, gpus[a].handle, gpus[b].handle, &level) ==
                     kNvmlSuccess) {
        label.kind = kind_of_level(level);
      }
      links.labels[a * count + b] = label;
      links.labels[b * count + a] = label;
    }
  }
  return links;
}

}  // namespace muster
