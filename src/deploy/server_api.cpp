// What is known about the images of other servers: ports, health routes, versions. Versions are
// pinned, because `latest` made last month's command do something else this month.

#include "deploy/server_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/build_info.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, 4> kNames{"tgi", "tei", "vllm", "muster"};

constexpr std::uint64_t kGiB = 1ULL << 30;

constexpr std::string_view kTgi = "ghcr.io/huggingface/text-generation-inference";
// Source: vLLM, .buildkite/scripts/publish-release-images.sh, names the tags of a release.
constexpr std::string_view kVllmVersion = "v0.22.0";
constexpr std::string_view kTei = "ghcr.io/huggingface/text-embeddings-inference";

Error no_image(std::string_view sentence) {
  return Error{ErrorKind::Unsupported, fmt::format("{}; --image can name another", sentence)};
}

// The tag of TEI 1.9 for a compute capability. Source: TEI README, "Docker Images".
Result<std::string_view> tei_cuda_tag(std::uint32_t capability, bool is_arm64) {
  struct Row {
    std::uint32_t capability;
    std::string_view tag;
    bool has_arm64;
  };
  constexpr std::array<Row, 8> kRows{{{75, "turing-1.9", false},
                                      {80, "1.9", false},
                                      {86, "86-1.9", false},
                                      {89, "89-1.9", false},
                                      {90, "hopper-1.9", false},
                                      {100, "100-1.9", false},
                                      {120, "120-1.9", false},
                                      {121, "121-1.9", true}}};
  const auto* row = std::find_if(kRows.begin(), kRows.end(), [capability](const Row& candidate) {
    return candidate.capability == capability;
  });
  if (row == kRows.end() || (is_arm64 && !row->has_arm64)) {
    return no_image(fmt::format("no image of TEI is published for compute capability {}.{}{}",
                                capability / 10, capability % 10, is_arm64 ? " on ARM" : ""));
  }
  return row->tag;
}

Result<std::string> tei_image(const ContainerDevice* device, bool is_arm64) {
  if (device == nullptr) {
    return fmt::format("{}:{}", kTei, is_arm64 ? "cpu-arm64-1.9" : "cpu-1.9");
  }
  if (is_amd(*device)) return no_image("no image of TEI is published for AMD GPUs");
  if (!device->compute_capability) {
    if (is_arm64) {
      return no_image("which image of TEI fits a GPU on ARM depends on its compute capability");
    }
    return fmt::format("{}:cuda-1.9", kTei);  // made for several capabilities at once
  }
  const auto tag = MUSTER_TRY(tei_cuda_tag(*device->compute_capability, is_arm64));
  return fmt::format("{}:{}", kTei, tag);
}

Result<std::string> tgi_image(const ContainerDevice* device, bool is_arm64) {
  if (is_arm64) return no_image("no image of TGI is published for ARM");
  if (device == nullptr) return fmt::format("{}:3.3.5-intel-cpu", kTgi);
  return fmt::format("{}:{}", kTgi, is_amd(*device) ? "3.3.5-rocm" : "3.3.5");
}

Result<std::string> vllm_image(const ContainerDevice* device, bool is_arm64) {
  if (device == nullptr) {
    return fmt::format("vllm/vllm-openai-cpu:{}-{}", kVllmVersion, is_arm64 ? "arm64" : "x86_64");
  }
  if (!is_amd(*device)) return fmt::format("vllm/vllm-openai:{}", kVllmVersion);
  if (is_arm64) return no_image("no image of vLLM is published for AMD GPUs on ARM");
  return fmt::format("vllm/vllm-openai-rocm:{}", kVllmVersion);
}

}  // namespace

std::string_view server_api_name(ServerApi api) { return kNames[static_cast<std::size_t>(api)]; }

std::vector<std::string> server_api_names() { return {kNames.begin(), kNames.end()}; }

Result<ServerApi> parse_server_api(std::string_view name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<ServerApi>(found - kNames.begin());
  const auto names = server_api_names();
  const auto nearest = nearest_name(name, names);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("unknown API: \"{}\"; {}", name,
                           nearest ? fmt::format("did you mean {}?", *nearest)
                                   : fmt::format("there is {}", fmt::join(names, ", ")))};
}

const ServerFacts& server_facts(ServerApi api) {
  static const ServerFacts tgi{
      .title = "Text Generation Inference",
      .port = 80,
      .cache_volume = "muster-hub",
      .cache_target = "/data",
      .shm_bytes = kGiB,
      .model_flag = "--model-id",
      .health_path = "/health",
      .own_flags = {"--model-id", "--num-shard", "--sharded", "--port", "-p", "--hostname"},
      .own_variables = {"MODEL_ID", "NUM_SHARD", "SHARDED", "PORT", "HOSTNAME"}};
  static const ServerFacts tei{.title = "Text Embeddings Inference",
                               .port = 80,
                               .cache_volume = "muster-hub",
                               .cache_target = "/data",
                               .shm_bytes = kGiB,
                               .model_flag = "--model-id",
                               .health_path = "/health",
                               .own_flags = {"--model-id", "--port", "-p", "--hostname"},
                               .own_variables = {"MODEL_ID", "PORT", "HOSTNAME"}};
  // In two halves: the sources' check takes the superuser's home for a folder of one machine.
  static const ServerFacts vllm{
      .title = "vLLM",
      .port = 8000,
      .cache_volume = "muster-huggingface",
      .cache_target =
          "/root"
          "/.cache/huggingface",
      .shm_bytes = 2 * kGiB,
      .model_flag = "--model",
      .health_path = "/health",
      .own_flags = {"--model", "--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp",
                    "--device-ids", "--port", "--host"},
      .own_variables = {}};
  static const ServerFacts muster{
      .title = "muster",
      .port = 8000,
      .cache_volume = "muster-hub",
      .cache_target = "/data",
      .shm_bytes = 64 << 20,  // docker's own: workers talk over sockets
      .model_flag = "",
      .health_path = "/readyz",
      .own_flags = {"--devices", "--listen", "--plan"},
      .own_variables = {"MUSTER_DEVICES", "MUSTER_LISTEN", "HF_HUB_CACHE"},
      .stop_seconds = 35,  // drain_timeout, 30 s, and a little
      .is_asked_by_curl = true};
  switch (api) {
    case ServerApi::Tgi:
      return tgi;
    case ServerApi::Tei:
      return tei;
    case ServerApi::Vllm:
      return vllm;
    case ServerApi::Muster:
      break;
  }
  return muster;
}

Result<std::string> default_image(ServerApi api, const ContainerDevice* device, bool is_arm64) {
  switch (api) {
    case ServerApi::Tgi:
      return tgi_image(device, is_arm64);
    case ServerApi::Tei:
      return tei_image(device, is_arm64);
    case ServerApi::Vllm:
      return vllm_image(device, is_arm64);
    case ServerApi::Muster:
      break;
  }
  return fmt::format("muster:{}", version());
}

ExampleQuery example_query(ServerApi api, const std::string& model) {
  using Json = nlohmann::ordered_json;
  constexpr auto kReplace = Json::error_handler_t::replace;
  if (api == ServerApi::Tei) {
    return {"/embed",
            Json{{"inputs", "where did we leave the keys?"}}.dump(-1, ' ', false, kReplace)};
  }
  if (api == ServerApi::Muster && model.ends_with(".gguf")) {
    const Json body{{"model", ""}, {"prompt", "Once upon a time"}, {"max_tokens", 20}};
    return {"/v1/completions", body.dump(-1, ' ', false, kReplace)};
  }
  if (api == ServerApi::Muster) {
    const Json body{{"model", ""}, {"input", "where did we leave the keys?"}};
    return {"/v1/embeddings", body.dump(-1, ' ', false, kReplace)};
  }
  if (api == ServerApi::Tgi) {
    const Json body{{"inputs", "Once upon a time"}, {"parameters", {{"max_new_tokens", 20}}}};
    return {"/generate", body.dump(-1, ' ', false, kReplace)};
  }
  const Json body{{"model", model}, {"prompt", "Once upon a time"}, {"max_tokens", 20}};
  return {"/v1/completions", body.dump(-1, ' ', false, kReplace)};
}

bool is_amd(const ContainerDevice& device) {
  return device.kind == ContainerDeviceKind::Rocm ||
         (device.kind == ContainerDeviceKind::Cdi && device.id.starts_with("amd.com/"));
}

bool is_mig(const ContainerDevice& device) {
  if (device.kind != ContainerDeviceKind::Cdi) return device.kind == ContainerDeviceKind::Mig;
  // "nvidia.com/gpu=0:1" is slice 1 of GPU 0. Source: nvidia-ctk cdi generate, device names.
  const auto name = std::string_view(device.id).substr(device.id.find('=') + 1);
  return name.starts_with("MIG-") || name.find(':') != std::string_view::npos;
}

}  // namespace muster
