#include "deploy/deployment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "deploy/request_check.h"

namespace muster {
namespace {

ContainerDevice gpu(std::uint32_t place) {
  return {.kind = ContainerDeviceKind::Nvidia,
          .id = std::to_string(place),
          .host_place = place,
          .model = "NVIDIA A10G",
          .compute_capability = 86,
          .mig_profile = ""};
}

ContainerDevice mig(const std::string& id) {
  return {.kind = ContainerDeviceKind::Mig,
          .id = id,
          .host_place = {},
          .model = "",
          .compute_capability = {},
          .mig_profile = ""};
}

ContainerRequest request_for(ServerApi api, std::vector<ContainerDevice> devices) {
  ContainerRequest request;
  request.api = api;
  request.model = "facebook/opt-1.3b";
  request.devices = std::move(devices);
  return request;
}

void expect_refused(const ContainerRequest& request, ErrorKind kind, const std::string& part) {
  const auto planned = plan_deployment(request);
  ASSERT_FALSE(planned) << part;
  EXPECT_EQ(planned.error().kind, kind) << planned.error().message;
  EXPECT_NE(planned.error().message.find(part), std::string::npos) << planned.error().message;
}

bool has_variable(const ContainerSpec& container, const std::string& name) {
  return std::any_of(container.environment.begin(), container.environment.end(),
                     [&](const auto& variable) { return variable.name == name; });
}

using Words = std::vector<std::string>;

TEST(PlanDeployment, StartsEachServerWithItsOwnWords) {
  auto request = request_for(ServerApi::Tgi, {gpu(0), gpu(1)});
  request.heads = {.head_count = 32, .kv_head_count = 32, .layer_count = 24};
  const auto tgi = plan_deployment(request);
  ASSERT_TRUE(tgi) << tgi.error().message;
  ASSERT_EQ(tgi->containers.size(), 1U);
  EXPECT_EQ(tgi->containers[0].arguments,
            (Words{"--model-id", "facebook/opt-1.3b", "--num-shard", "2"}));
  EXPECT_EQ(tgi->containers[0].image, "ghcr.io/huggingface/text-generation-inference:3.3.5");
  EXPECT_EQ(tgi->name, "muster-tgi-opt-1-3b");

  request.api = ServerApi::Vllm;
  request.server_arguments = {"--max-model-len", "2048"};
  const auto vllm = plan_deployment(request);
  ASSERT_TRUE(vllm) << vllm.error().message;
  EXPECT_EQ(vllm->containers[0].arguments,
            (Words{"--model", "facebook/opt-1.3b", "--tensor-parallel-size", "2", "--max-model-len",
                   "2048"}));
  EXPECT_EQ(vllm->containers[0].image, "vllm/vllm-openai:v0.22.0");
}

TEST(PlanDeployment, GivesTeiAContainerForEachGpuOnConsecutivePorts) {
  auto request = request_for(ServerApi::Tei, {gpu(3), gpu(1), gpu(2)});
  request.port = 9000;
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->containers.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& container = planned->containers[i];
    EXPECT_EQ(container.name, "muster-tei-opt-1-3b-" + std::to_string(i));
    EXPECT_EQ(container.host_port, 9000 + i);
    ASSERT_EQ(container.devices.size(), 1U);
    EXPECT_EQ(container.devices[0].id, request.devices[i].id);
    EXPECT_EQ(container.arguments, (Words{"--model-id", "facebook/opt-1.3b"}));
    EXPECT_FALSE(has_variable(container, "CUDA_VISIBLE_DEVICES"));
    EXPECT_EQ(container.image, "ghcr.io/huggingface/text-embeddings-inference:86-1.9");
  }
  ASSERT_EQ(planned->notes.size(), 1U);
}

// vLLM #7211, #6551: tensor parallelism over MIG slices does not start.
TEST(PlanDeployment, NeverJoinsMigSlices) {
  for (const auto api : {ServerApi::Tgi, ServerApi::Vllm, ServerApi::Tei}) {
    const auto planned = plan_deployment(request_for(api, {mig("MIG-aa"), mig("MIG-bb")}));
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_EQ(planned->containers.size(), 2U);
    EXPECT_EQ(planned->shards.tensor, 1U);
    EXPECT_EQ(planned->shards.pipeline, 1U);
  }
}

TEST(PlanDeployment, SetsNoHostNumbersInside) {
  // The script of document 4 set CUDA_VISIBLE_DEVICES=2 beside --gpus device=2: inside there is
  // only GPU 0, so nothing was visible.
  const auto one = plan_deployment(request_for(ServerApi::Tgi, {gpu(2)}));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_FALSE(has_variable(one->containers[0], "CUDA_VISIBLE_DEVICES"));
  const auto two = plan_deployment(request_for(ServerApi::Tgi, {gpu(4), gpu(6)}));
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_FALSE(has_variable(two->containers[0], "CUDA_VISIBLE_DEVICES"));
}

TEST(PlanDeployment, HidesEveryGpuWhenNoneIsWanted) {
  const auto planned = plan_deployment(request_for(ServerApi::Tei, {}));
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->containers[0].environment.size(), 1U);
  EXPECT_EQ(planned->containers[0].environment[0].name, "NVIDIA_VISIBLE_DEVICES");
  EXPECT_EQ(planned->containers[0].environment[0].value, "void");
  EXPECT_EQ(planned->containers[0].image, "ghcr.io/huggingface/text-embeddings-inference:cpu-1.9");
}

TEST(PlanDeployment, MountsAModelFolderReadOnlyAndKeepsACache) {
  auto request = request_for(ServerApi::Vllm, {gpu(0)});
  request.model = "/data/models/tiny/";
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->model, "/models/tiny");
  ASSERT_EQ(planned->volumes.size(), 2U);
  EXPECT_EQ(planned->volumes[0].source, "/data/models/tiny/");
  EXPECT_EQ(planned->volumes[0].target, "/models/tiny");
  EXPECT_TRUE(planned->volumes[0].is_read_only);
  EXPECT_EQ(planned->volumes[1].source, "muster-huggingface");
  EXPECT_EQ(planned->containers[0].arguments, (Words{"--model", "/models/tiny"}));
}

TEST(PlanDeployment, MountsAGgufFileReadOnly) {
  auto request = request_for(ServerApi::Muster, {});
  request.model = "/data/models/chat.gguf";
  request.own_devices = "2xcpu";
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->model, "/models/chat.gguf");
  EXPECT_TRUE(planned->first_arguments.empty()) << "nothing is fetched";
  EXPECT_EQ(planned->volumes[0].source, "/data/models/chat.gguf");
  EXPECT_EQ(planned->volumes[0].target, "/models/chat.gguf");
  EXPECT_TRUE(planned->volumes[0].is_read_only);
  EXPECT_EQ(planned->containers[0].arguments, (Words{"serve", "/models/chat.gguf", "--listen",
                                                     "0.0.0.0:8000", "--devices", "2xcpu"}));
}

TEST(PlanDeployment, LetsAGivenCacheTakeThePlaceOfItsOwn) {
  auto request = request_for(ServerApi::Tgi, {gpu(0)});
  request.volumes = {{"/srv/hub", "/data", false}};
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->volumes.size(), 1U);
  EXPECT_EQ(planned->volumes[0].source, "/srv/hub");
}

TEST(PlanDeployment, RefusesDevicesThatContradictEachOther) {
  expect_refused(request_for(ServerApi::Tgi, {gpu(1), gpu(1)}), ErrorKind::InvalidArgument,
                 "a device is named twice: 1");
  ContainerDevice amd{};
  amd.kind = ContainerDeviceKind::Rocm;
  amd.id = "/dev/dri/renderD128";
  expect_refused(request_for(ServerApi::Tgi, {gpu(1), amd}), ErrorKind::InvalidArgument,
                 "devices of one kind: 1 and /dev/dri/renderD128");
  expect_refused(request_for(ServerApi::Tgi, {gpu(1), mig("MIG-aa")}), ErrorKind::InvalidArgument,
                 "devices of one kind");
}

TEST(PlanDeployment, RefusesVariablesThatTheDevicesDecide) {
  for (const auto* name : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NUM_SHARD"}) {
    auto request = request_for(ServerApi::Tgi, {gpu(2)});
    request.environment = {{name, "2"}};
    expect_refused(request, ErrorKind::InvalidArgument, name);
  }
  auto request = request_for(ServerApi::Vllm, {gpu(2)});
  request.server_arguments = {"--tensor-parallel-size=4"};
  expect_refused(request, ErrorKind::InvalidArgument, "--tensor-parallel-size follows from");
}

TEST(PlanDeployment, RefusesWhatIsNoNamePortOrVolume) {
  auto request = request_for(ServerApi::Tgi, {});
  request.model = "";
  expect_refused(request, ErrorKind::InvalidArgument, "which model?");
  request.model = "--privileged";
  expect_refused(request, ErrorKind::InvalidArgument, "no name of a model");
  request = request_for(ServerApi::Tgi, {});
  request.name = "My Name";
  expect_refused(request, ErrorKind::InvalidArgument, "\"My Name\"");
  request = request_for(ServerApi::Tgi, {});
  request.image = "--privileged";
  expect_refused(request, ErrorKind::InvalidArgument, "no name of an image");
  request = request_for(ServerApi::Tei, {gpu(0), gpu(1)});
  request.port = 65535;
  expect_refused(request, ErrorKind::InvalidArgument, "65536");
  request = request_for(ServerApi::Tei, {});
  request.volumes = {{"data", "relative", false}};
  expect_refused(request, ErrorKind::InvalidArgument, "\"data:relative\"");
  request = request_for(ServerApi::Tei, {});
  request.environment = {{"2BAD", "x"}};
  expect_refused(request, ErrorKind::InvalidArgument, "\"2BAD\"");
}

TEST(PlanDeployment, ServesByMusterItself) {
  auto request = request_for(ServerApi::Muster, {gpu(2), gpu(0)});
  request.model = "BAAI/bge-m3";
  request.image = "registry/muster:1";
  request.environment = {{"MUSTER_API_KEY", "k"}};
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->containers.size(), 1U) << "one server for all of its devices";
  const auto& container = planned->containers[0];
  EXPECT_EQ(container.arguments,
            (Words{"serve", "BAAI/bge-m3", "--listen", "0.0.0.0:8000", "--devices", "cuda"}));
  EXPECT_EQ(container.image, "registry/muster:1");
  EXPECT_TRUE(has_variable(container, "HF_HUB_CACHE"));
  EXPECT_TRUE(has_variable(container, "MUSTER_API_KEY"));
  EXPECT_EQ(planned->first_arguments, (Words{"pull", "BAAI/bge-m3"}));
  ASSERT_EQ(planned->volumes.size(), 1U);
  EXPECT_EQ(planned->volumes[0].source, "muster-hub");
  EXPECT_EQ(planned->volumes[0].target, "/data");
  EXPECT_TRUE(planned->notes.empty()) << planned->notes.front();

  // What this machine's cache has is mounted, and not fetched again; so is a folder.
  request.hub_cache = "/srv/hub";
  request.image.reset();
  const auto cached = plan_deployment(request);
  ASSERT_TRUE(cached);
  EXPECT_TRUE(cached->first_arguments.empty());
  ASSERT_EQ(cached->volumes.size(), 1U);
  EXPECT_EQ(cached->volumes[0].source, "/srv/hub");
  EXPECT_TRUE(cached->volumes[0].is_read_only);
  ASSERT_EQ(cached->notes.size(), 1U);
  EXPECT_NE(cached->notes[0].find("packaging/Dockerfile"), std::string::npos);

  request = request_for(ServerApi::Muster, {});
  request.model = "/srv/my-model";
  request.own_devices = "2xcpu";
  const auto folder = plan_deployment(request);
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder->containers[0].arguments,
            (Words{"serve", "/models/my-model", "--listen", "0.0.0.0:8000", "--devices", "2xcpu"}));
  EXPECT_TRUE(folder->first_arguments.empty());
}

TEST(PlanDeployment, RefusesWhatMusterCannotRunOn) {
  ContainerDevice amd;
  amd.kind = ContainerDeviceKind::Rocm;
  amd.id = "/dev/dri/renderD128";
  expect_refused(request_for(ServerApi::Muster, {amd}), ErrorKind::Unsupported,
                 "AMD GPUs are only watched");
  auto request = request_for(ServerApi::Muster, {});
  request.server_arguments = {"--listen", "0.0.0.0:1"};
  expect_refused(request, ErrorKind::InvalidArgument, "--listen follows from");
}

TEST(PlanDeployment, MakesAContainerForEachCopyOfAPlan) {
  auto request = request_for(ServerApi::Vllm, {gpu(0), gpu(1), gpu(2), gpu(3)});
  request.copies = 2;
  request.shards = ShardCounts{.tensor = 2, .pipeline = 1};
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->containers.size(), 2U);
  EXPECT_EQ(planned->containers[1].host_port, 8081);
  ASSERT_EQ(planned->containers[1].devices.size(), 2U);
  EXPECT_EQ(planned->containers[1].devices[0].id, "2");
  EXPECT_EQ(planned->containers[1].arguments,
            (Words{"--model", "facebook/opt-1.3b", "--tensor-parallel-size", "2"}));
  request.copies = 3;
  expect_refused(request, ErrorKind::InvalidArgument, "4 devices do not make 3 equal copies");
}

TEST(DeploymentName, IsOneThatDockerAndKubernetesTake) {
  EXPECT_EQ(deployment_name(ServerApi::Tgi, "facebook/opt-6.7b"), "muster-tgi-opt-6-7b");
  EXPECT_EQ(deployment_name(ServerApi::Vllm, "/srv/Meta Llama_3.1/"), "muster-vllm-meta-llama-3-1");
  const auto longest = deployment_name(ServerApi::Tei, std::string(200, 'x'));
  EXPECT_EQ(longest.size(), 50U);
  EXPECT_EQ(deployment_name(ServerApi::Tei, "org/..."), "muster-tei");
}

TEST(CheckDeviceId, KnowsTheFormsOfEachKind) {
  const auto is_accepted = [](ContainerDeviceKind kind, const std::string& id) {
    ContainerDevice device;
    device.kind = kind;
    device.id = id;
    return check_device_id(device).has_value();
  };
  using Kind = ContainerDeviceKind;
  EXPECT_TRUE(is_accepted(Kind::Nvidia, "GPU-5e6f0cd1-0000-0000-0000-000000000001"));
  EXPECT_TRUE(is_accepted(Kind::Mig, "MIG-GPU-5e6f0cd1-00/7/0"));
  EXPECT_TRUE(is_accepted(Kind::Cdi, "nvidia.com/gpu=0:1"));
  EXPECT_TRUE(is_accepted(Kind::Cdi, "amd.com/gpu=3"));
  EXPECT_TRUE(is_accepted(Kind::Rocm, "/dev/dri/renderD129"));
  // A comma or a quote would be read as a second device by the client's CSV reader.
  EXPECT_FALSE(is_accepted(Kind::Nvidia, "0,1"));
  EXPECT_FALSE(is_accepted(Kind::Nvidia, "GPU-1\",count=all"));
  EXPECT_FALSE(is_accepted(Kind::Nvidia, "all"));
  EXPECT_FALSE(is_accepted(Kind::Mig, "GPU-1"));
  EXPECT_FALSE(is_accepted(Kind::Cdi, "nvidia.com/gpu=all"));
  EXPECT_FALSE(is_accepted(Kind::Cdi, "gpu=0"));
  EXPECT_FALSE(is_accepted(Kind::Rocm, "/dev/dri"));
  EXPECT_FALSE(is_accepted(Kind::Rocm, "/dev/dri/renderD128:/x"));
}

}  // namespace
}  // namespace muster
