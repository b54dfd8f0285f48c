#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster {

/// The server inside the container, which fixes the image, the port and the words it is started
/// with.
enum class ServerApi : std::uint8_t {
  Tgi,     // Hugging Face Text Generation Inference
  Tei,     // Hugging Face Text Embeddings Inference
  Vllm,    // vLLM's OpenAI-compatible server
  Muster,  // `muster serve`
};

/// How a device is handed to a container, which follows from how it is named.
enum class ContainerDeviceKind : std::uint8_t {
  Nvidia,  // "GPU-…", or an index as the driver counts: `--gpus`
  Mig,     // "MIG-…", a slice of an NVIDIA GPU: `--gpus`
  Cdi,     // "nvidia.com/gpu=0", "amd.com/gpu=1": `--device`
  Rocm,    // "/dev/dri/renderD128": `--device`, with /dev/kfd beside it
};

/// One device for a container.
struct ContainerDevice {
  ContainerDeviceKind kind = ContainerDeviceKind::Nvidia;
  std::string id;  // as in ContainerDeviceKind; empty where only Kubernetes is to choose it
  std::optional<std::uint32_t> host_place;  // among the host's GPUs of its vendor, in PCI order
  std::string model;                        // "NVIDIA A10G"; empty: unknown
  std::optional<std::uint32_t> compute_capability;  // 86 for 8.6
  std::string mig_profile;                          // Mig: "1g.5gb"; only Kubernetes needs it
};

/// Numbers of a model that bound how it is split. 0: unknown.
struct ModelHeads {
  std::uint32_t head_count = 0;
  std::uint32_t kv_head_count = 0;
  std::uint32_t layer_count = 0;
};

/// How one container splits a model over its devices: tensor x pipeline = devices.
struct ShardCounts {
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
};

struct EnvironmentVariable {
  std::string name;
  std::string value;
};

/// A folder of the host (an absolute path) or a named volume, and where the container sees it.
struct ContainerVolume {
  std::string source;
  std::string target;
  bool is_read_only = false;

  bool is_folder() const { return source.starts_with('/'); }
};

/// A serving container on chosen devices, as it is asked for.
struct ContainerRequest {
  ServerApi api = ServerApi::Tgi;
  std::string model;  // a hub id, or an absolute path: a folder, Muster: a .gguf file too
  std::optional<std::string> image;      // none: the one published for the API and the devices
  std::string name;                      // of the container; empty: from API and model
  std::string host = "127.0.0.1";        // address of the host where the port is opened
  std::uint16_t port = 8080;             // on the host; replicas take the ports after it
  std::vector<ContainerDevice> devices;  // in the order the server is to number them
  std::vector<std::uint32_t> group_ids;  // Rocm: the groups that own the device files
  // A plan's: so many equal containers that share the devices in their order, each split so.
  // Without one, what the server can do decides.
  std::uint32_t copies = 0;
  std::optional<ShardCounts> shards = {};
  std::string hub_cache;    // Muster: the host's folder with the model of a hub id; empty: not here
  std::string own_devices;  // Muster: its --devices inside; empty: the GPUs, or cpu without
  std::vector<EnvironmentVariable> environment;
  std::vector<ContainerVolume> volumes;
  std::optional<std::uint64_t> shm_bytes;  // none: what the server's own documents use
  ModelHeads heads;
  std::vector<std::string> server_arguments;  // after those that follow from this request
  bool is_arm64 = false;                      // the host's processor; else x86-64
};

}  // namespace muster
