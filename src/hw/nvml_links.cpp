#include "hw/nvml_links.h"

#include <algorithm>

#include "hw/nvml_fields.h"

namespace muster {
namespace {

// Where the links of one GPU go.
struct LinkEnds {
  std::vector<std::uint32_t> to_gpu;  // how many to each
  std::uint32_t to_switch = 0;
};

bool is_same_place(const NvmlPciInfo& a, const NvmlPciInfo& b) {
  return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

LinkEnds read_link_ends(const NvmlFunctions& nvml, const std::vector<NvmlGpu>& gpus,
                        std::size_t self, unsigned link_count, NvmlCaller& call) {
  LinkEnds ends{std::vector<std::uint32_t>(gpus.size()), 0};
  auto* const handle = gpus[self].handle;
  for (unsigned link = 0; link < link_count; ++link) {
    unsigned is_active = 0;
    if (call(nvml.link_state, handle, link, &is_active) != kNvmlSuccess || is_active == 0) continue;
    NvmlPciInfo remote{};
    const bool has_place = call(nvml.link_remote_pci, handle, link, &remote) == kNvmlSuccess;
    const auto peer = std::find_if(gpus.begin(), gpus.end(), [&](const NvmlGpu& gpu) {
      return has_place && gpu.pci && is_same_place(*gpu.pci, remote);
    });
    unsigned type = kNvmlLinkToGpu;
    if (peer != gpus.end()) {
      ++ends.to_gpu[static_cast<std::size_t>(peer - gpus.begin())];
    } else if (call(nvml.link_remote_type, handle, link, &type) == kNvmlSuccess &&
               type == kNvmlLinkToSwitch) {
      ++ends.to_switch;
    }
  }
  return ends;
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

LinkMatrix read_nvml_links(const NvmlFunctions& nvml, const std::vector<NvmlGpu>& gpus,
                           const std::vector<unsigned>& link_counts, NvmlCaller& call) {
  const auto count = gpus.size();
  std::vector<LinkEnds> ends;
  for (std::size_t i = 0; i < count; ++i) {
    ends.push_back(read_link_ends(nvml, gpus, i, link_counts[i], call));
  }
  LinkMatrix links;
  links.device_count = static_cast<std::uint32_t>(count);
  links.labels.resize(count * count);
  for (std::size_t a = 0; a < count; ++a) {
    links.labels[a * count + a].kind = LinkKind::Self;
    for (std::size_t b = a + 1; b < count; ++b) {
      LinkLabel label;
      label.width = std::max(ends[a].to_gpu[b], ends[b].to_gpu[a]) +
                    std::min(ends[a].to_switch, ends[b].to_switch);
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
