#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/device.h"

namespace muster {

/// How two devices of a node reach each other, the nearest first. The PCIe names are those of
/// `nvidia-smi topo -m`. Source: nvml.h 13.3, nvmlGpuTopologyLevel_t.
enum class LinkKind : std::uint8_t {
  Self,    // the same device
  NvLink,  // NV#: `width` links between them, or through a switch
  Xgmi,    // AMD's
  Pix,     // one PCIe switch
  Pxb,     // several PCIe switches
  Phb,     // the host bridge
  Node,    // host bridges of one NUMA node
  Sys,     // over the link between sockets
};

/// What a matrix says of two devices: "NV12", "PHB".
struct LinkLabel {
  LinkKind kind = LinkKind::Sys;
  std::uint32_t width = 0;  // NvLink, Xgmi
};

/// Labels among the devices of a node: [n * n], row-major, symmetric.
struct LinkMatrix {
  std::uint32_t device_count = 0;
  std::vector<LinkLabel> labels;
};

struct Link {
  LinkKind kind = LinkKind::Sys;
  std::uint32_t width = 0;        // NvLink, Xgmi: how many
  double bytes_per_second = 0.0;  // one direction
};

/// Facts of a type of device that planning needs, each from a data sheet named in the catalogue,
/// from a measurement, or absent.
struct DeviceClass {
  std::string model;  // "H100-80G"
  DeviceKind kind = DeviceKind::Cuda;
  std::uint64_t memory_bytes = 0;
  std::optional<double> flops_per_second;         // dense, 16-bit products
  std::optional<double> memory_bytes_per_second;  // peak
};

/// One device where a model can go.
struct MachineDevice {
  DeviceKind kind = DeviceKind::Cuda;
  std::uint32_t index = 0;         // within its kind, over the whole machine
  std::uint32_t device_class = 0;  // into Machine::classes
  std::uint32_t node = 0;
  std::uint32_t core_count = 1;       // Cpu: cores it computes on
  std::uint64_t free_bytes = 0;       // what a new program can have
  std::optional<std::string> uuid;    // "GPU-…", "MIG-…"
  std::optional<std::string> parent;  // a MIG slice's GPU

  std::string name() const;  // "cuda:3"
};

/// Links among the devices of a kind of node: [n * n], row-major, symmetric.
struct NodeLinks {
  std::uint32_t device_count = 0;
  std::vector<Link> links;

  const Link& between(std::uint32_t a, std::uint32_t b) const {
    return links[a * device_count + b];
  }
};

/// A node: its devices are consecutive in Machine::devices.
struct MachineNode {
  std::uint32_t first_device = 0;
  std::uint32_t device_count = 0;
  std::uint32_t links = 0;       // into Machine::node_links
  std::uint64_t host_bytes = 0;  // memory for offloaded layers, within the cgroup
};

/// Where a model could go: one machine, or many equal or different nodes. Memory is O(devices):
/// nodes of one kind share their links.
struct Machine {
  std::string name;  // "here", "sim:8xH100-80G", a file's name
  std::vector<DeviceClass> classes;
  std::vector<MachineDevice> devices;
  std::vector<NodeLinks> node_links;
  std::vector<MachineNode> nodes;
  std::optional<double> network_bytes_per_second;    // between nodes, one direction
  std::optional<double> host_link_bytes_per_second;  // device to host memory
};

/// Whether a model is planned for GPUs there. A machine without devices is taken for one of GPUs.
bool computes_on_gpus(const Machine& machine);

}  // namespace muster
