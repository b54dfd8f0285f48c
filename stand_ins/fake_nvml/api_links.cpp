#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fake_nvml/driver.h"
#include "fake_nvml/nvlink.h"

namespace muster::fake_nvml {
namespace {

constexpr std::uint32_t kTypeGpu = 0;     // NVML_NVLINK_DEVICE_TYPE_GPU
constexpr std::uint32_t kTypeSwitch = 2;  // NVML_NVLINK_DEVICE_TYPE_SWITCH
constexpr std::uint32_t kSwitchCount = 4;
constexpr std::uint32_t kSwitchBus = 0x07;  // of the first NVSwitch of an HGX board

/// NVML_NVLINK_VERSION_*. Source: nvml.h 13.3; the architectures' white papers.
std::uint32_t link_version(Architecture architecture) {
  switch (architecture) {
    case Architecture::Volta:
    case Architecture::Turing:
      return 2;  // 2.0
    case Architecture::Ampere:
    case Architecture::Ada:
      return 4;  // 3.0
    case Architecture::Hopper:
      return 6;  // 4.0
    case Architecture::Blackwell:
      return 7;  // 5.0
  }
  return 0;
}

/// An answer about one link of a GPU.
template <typename Number, typename Work>
int about_link(Function function, DeviceHandle device, unsigned link, Number* out, Work work) {
  return answer_gpu(function, device, [&](const Visit& visit) -> int {
    if (out == nullptr || link >= kLinksMax) return kInvalidArgument;
    if (visit.spec().nvlink_count == 0) return kNotSupported;
    if (link >= visit.spec().nvlink_count) return kInvalidArgument;
    work(visit, *out);
    return kSuccess;
  });
}

void fill_pci(std::uint32_t domain, std::uint32_t bus, std::uint32_t device, PciInfo& pci) {
  pci = {};
  pci.domain = domain;
  pci.bus = bus;
  pci.device = device;
  const auto rest = fmt::format("{:02X}:{:02X}.0", bus, device);
  const auto legacy = fmt::format("{:04X}:{}", domain & 0xFFFF, rest);
  const auto full = fmt::format("{:08X}:{}", domain, rest);
  std::memcpy(pci.bus_id_legacy.data(), legacy.data(),
              std::min(legacy.size(), pci.bus_id_legacy.size() - 1));
  std::memcpy(pci.bus_id.data(), full.data(), std::min(full.size(), pci.bus_id.size() - 1));
}

int get_remote(Function function, DeviceHandle device, unsigned link, PciInfo* pci) {
  return about_link(function, device, link, pci, [&](const Visit& visit, PciInfo& out) {
    const auto peer = link_peer(visit.spec(), link);
    if (peer) {
      const auto& other = visit.driver.gpu(*peer).spec;
      fill_pci(other.pci_domain, other.pci_bus, other.pci_device, out);
    } else {
      fill_pci(visit.spec().pci_domain, kSwitchBus + link % kSwitchCount, 0, out);
    }
  });
}

/// nvmlGpuTopologyLevel_t between two GPUs.
unsigned level_between(const FakeGpu& a, const FakeGpu& b) {
  if (a.numa_node != b.numa_node) return 50;
  if (a.host_bridge != b.host_bridge) return 40;
  if (a.pcie_tree != b.pcie_tree) return 30;
  return a.pcie_switch == b.pcie_switch ? 10 : 20;
}

bool is_linked(const Visit& visit, std::uint32_t other) {
  if (links_up(visit) == 0) return false;
  if (visit.spec().has_nvlink_switch) return visit.driver.gpu(other).spec.has_nvlink_switch;
  const auto& peers = visit.spec().nvlink_peers;
  return std::any_of(peers.begin(), peers.end(),
                     [&](const NvlinkPeer& peer) { return peer.gpu == other; });
}

std::uint32_t other_gpu(const Visit& visit, DeviceHandle device) {
  return visit.driver.check(device)->gpu;
}

/// A setting of the PCIe link of a GPU, or what its model can do.
int get_pcie(Function function, DeviceHandle device, unsigned* out, ValueId id, bool is_max) {
  return answer_gpu(function, device, [&](const Visit& visit) -> int {
    if (out == nullptr) return kInvalidArgument;
    constexpr unsigned kLanes = 16;
    const unsigned best =
        id == ValueId::PcieLanes ? kLanes : visit.spec().model->facts->pcie_generation;
    const auto now = visit.gpu.sensor.value(id, visit.now_ns, best);
    if (!now) return kNotSupported;
    *out = is_max ? best : static_cast<unsigned>(*now);
    return kSuccess;
  });
}

}  // namespace

bool is_link_up(const Visit& visit, std::uint32_t link) { return link < links_up(visit); }

std::uint32_t links_up(const Visit& visit) {
  const auto down = visit.gpu.sensor.value(ValueId::NvlinkLinksDown, visit.now_ns, 0);
  const auto count = visit.spec().nvlink_count;
  return count - std::min(count, static_cast<std::uint32_t>(down.value_or(0)));
}

std::optional<std::uint32_t> link_peer(const FakeGpu& gpu, std::uint32_t link) {
  for (const auto& peer : gpu.nvlink_peers) {
    if (link < peer.links) return peer.gpu;
    link -= peer.links;
  }
  return std::nullopt;
}

FAKENVML_EXPORT int nvmlDeviceGetNvLinkState(DeviceHandle device, unsigned link, unsigned* state) {
  return about_link(Function::nvmlDeviceGetNvLinkState, device, link, state,
                    [&](const Visit& visit, unsigned& out) { out = is_link_up(visit, link); });
}

FAKENVML_EXPORT int nvmlDeviceGetNvLinkVersion(DeviceHandle device, unsigned link,
                                               unsigned* version) {
  return about_link(Function::nvmlDeviceGetNvLinkVersion, device, link, version,
                    [&](const Visit& visit, unsigned& out) {
                      out = link_version(visit.spec().model->architecture);
                    });
}

FAKENVML_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo(DeviceHandle device, unsigned link,
                                                     PciInfo* pci) {
  return get_remote(Function::nvmlDeviceGetNvLinkRemotePciInfo, device, link, pci);
}

FAKENVML_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(DeviceHandle device, unsigned link,
                                                        PciInfo* pci) {
  return get_remote(Function::nvmlDeviceGetNvLinkRemotePciInfo_v2, device, link, pci);
}

FAKENVML_EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(DeviceHandle device, unsigned link,
                                                        unsigned* type) {
  return about_link(Function::nvmlDeviceGetNvLinkRemoteDeviceType, device, link, type,
                    [&](const Visit& visit, unsigned& out) {
                      out = link_peer(visit.spec(), link) ? kTypeGpu : kTypeSwitch;
                    });
}

FAKENVML_EXPORT int nvmlDeviceGetTopologyCommonAncestor(DeviceHandle a, DeviceHandle b,
                                                        unsigned* level) {
  return answer_gpu(Function::nvmlDeviceGetTopologyCommonAncestor, a,
                    [&](const Visit& visit) -> int {
                      if (level == nullptr || visit.driver.check(b) == nullptr) {
                        return kInvalidArgument;
                      }
                      const auto other = other_gpu(visit, b);
                      *level = other == visit.handle.gpu
                                   ? 0
                                   : level_between(visit.spec(), visit.driver.gpu(other).spec);
                      return kSuccess;
                    });
}

FAKENVML_EXPORT int nvmlDeviceGetP2PStatus(DeviceHandle a, DeviceHandle b, unsigned what,
                                           unsigned* status) {
  return answer_gpu(Function::nvmlDeviceGetP2PStatus, a, [&](const Visit& visit) -> int {
    if (status == nullptr || what > 4 || visit.driver.check(b) == nullptr) return kInvalidArgument;
    const auto other = other_gpu(visit, b);
    const bool has_link = is_linked(visit, other);
    const bool is_near = level_between(visit.spec(), visit.driver.gpu(other).spec) < 50;
    constexpr unsigned kOk = 0;
    constexpr unsigned kChipset = 1;    // NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED
    constexpr unsigned kNoSupport = 5;  // NVML_P2P_STATUS_NOT_SUPPORTED
    if (what == 2 || what == 3) {       // NVLink, atomics
      *status = has_link ? kOk : kNoSupport;
    } else {
      *status = has_link || is_near ? kOk : kChipset;
    }
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(DeviceHandle device, unsigned* out) {
  return get_pcie(Function::nvmlDeviceGetCurrPcieLinkGeneration, device, out,
                  ValueId::PcieGeneration, false);
}

FAKENVML_EXPORT int nvmlDeviceGetCurrPcieLinkWidth(DeviceHandle device, unsigned* out) {
  return get_pcie(Function::nvmlDeviceGetCurrPcieLinkWidth, device, out, ValueId::PcieLanes, false);
}

FAKENVML_EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(DeviceHandle device, unsigned* out) {
  return get_pcie(Function::nvmlDeviceGetMaxPcieLinkGeneration, device, out,
                  ValueId::PcieGeneration, true);
}

FAKENVML_EXPORT int nvmlDeviceGetMaxPcieLinkWidth(DeviceHandle device, unsigned* out) {
  return get_pcie(Function::nvmlDeviceGetMaxPcieLinkWidth, device, out, ValueId::PcieLanes, true);
}

FAKENVML_EXPORT int nvmlDeviceGetPcieReplayCounter(DeviceHandle device, unsigned* out) {
  return answer_gpu(Function::nvmlDeviceGetPcieReplayCounter, device,
                    [&](const Visit& visit) -> int {
                      if (out == nullptr) return kInvalidArgument;
                      const auto count = visit.count(ValueId::PcieReplays);
                      if (!count) return kNotSupported;
                      *out = static_cast<unsigned>(*count);
                      return kSuccess;
                    });
}

}  // namespace muster::fake_nvml
