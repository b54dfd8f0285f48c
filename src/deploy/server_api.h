#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "deploy/container_request.h"

namespace muster {

/// "tgi", "tei", "vllm", "muster".
std::string_view server_api_name(ServerApi api);

/// All of them.
std::vector<std::string> server_api_names();

/// Errors: InvalidArgument, with the nearest right name.
Result<ServerApi> parse_server_api(std::string_view name);

/// What is fixed about a server's image. Sources: TGI 3.3.5, README and docs/source/reference/
/// launcher.md; TEI 1.9, README; vLLM, docs/deployment/docker.md and k8s.md; muster,
/// packaging/Dockerfile.
struct ServerFacts {
  std::string_view title;         // "Text Generation Inference"
  std::uint16_t port;             // inside the container
  std::string_view cache_volume;  // the named volume that keeps downloads
  std::string_view cache_target;  // where the image keeps downloads
  std::uint64_t shm_bytes;        // of /dev/shm; too little ends NCCL with a bus error (TGI #1655)
  std::string_view model_flag;    // "--model-id"; empty: a word behind `serve`
  std::string_view health_path;   // answers 200 when the server is ready
  std::vector<std::string_view> own_flags;      // those that follow from the request
  std::vector<std::string_view> own_variables;  // likewise
  std::uint32_t stop_seconds = 0;               // that it may take to end in order; 0: docker's ten
  bool is_asked_by_curl = false;  // whether it is ready: the image may say nothing of its health
};

const ServerFacts& server_facts(ServerApi api);

/// The image for a server on such a device (`device` is null: on the processor): the published one
/// in a fixed version; muster's own, which packaging/Dockerfile makes.
///
/// Errors: Unsupported, where none is published: a compute capability below 7.5 for TEI, AMD for
/// TEI, GPUs on ARM; it says that --image can name one. Sources: TGI 3.3.5 README and
/// installation_amd.md; TEI 1.9 README, "Docker Images"; vLLM docs/deployment/docker.md and
/// docker.rocm.inc.md.
Result<std::string> default_image(ServerApi api, const ContainerDevice* device, bool is_arm64);

/// A request that shows the server at work: the path and the JSON body of a POST.
struct ExampleQuery {
  std::string path;
  std::string body;
};
ExampleQuery example_query(ServerApi api, const std::string& model);

/// Where a container's devices are the vendor's: for images and Kubernetes.
bool is_amd(const ContainerDevice& device);

/// A slice of a GPU, however it is named.
bool is_mig(const ContainerDevice& device);

}  // namespace muster
