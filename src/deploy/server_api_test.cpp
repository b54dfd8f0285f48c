#include "deploy/server_api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/build_info.h"

namespace muster {
namespace {

ContainerDevice with_capability(std::optional<std::uint32_t> capability) {
  ContainerDevice device;
  device.id = "0";
  device.compute_capability = capability;
  return device;
}

TEST(ParseServerApi, NamesTheNearest) {
  for (const auto* name : {"tgi", "tei", "vllm", "muster"}) {
    const auto api = parse_server_api(name);
    ASSERT_TRUE(api);
    EXPECT_EQ(server_api_name(*api), name);
  }
  const auto unknown = parse_server_api("vlm");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(unknown.error().message, "unknown API: \"vlm\"; did you mean vllm?");
  EXPECT_EQ(parse_server_api("ollama").error().message,
            "unknown API: \"ollama\"; there is tgi, tei, vllm, muster");
}

// The table "Docker Images" of TEI's README, version 1.9.
TEST(DefaultImage, OfTeiFollowsTheComputeCapability) {
  struct Case {
    std::uint32_t capability;
    const char* tag;
  };
  for (const auto& [capability, tag] :
       {Case{75, "turing-1.9"}, Case{80, "1.9"}, Case{86, "86-1.9"}, Case{89, "89-1.9"},
        Case{90, "hopper-1.9"}, Case{100, "100-1.9"}, Case{120, "120-1.9"}, Case{121, "121-1.9"}}) {
    const auto device = with_capability(capability);
    const auto image = default_image(ServerApi::Tei, &device, false);
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(*image, std::string("ghcr.io/huggingface/text-embeddings-inference:") + tag);
  }
  const auto unknown = with_capability({});
  EXPECT_EQ(*default_image(ServerApi::Tei, &unknown, false),
            "ghcr.io/huggingface/text-embeddings-inference:cuda-1.9");
  EXPECT_EQ(*default_image(ServerApi::Tei, nullptr, true),
            "ghcr.io/huggingface/text-embeddings-inference:cpu-arm64-1.9");
}

TEST(DefaultImage, SaysWhereNoneIsPublished) {
  const auto volta = with_capability(70);
  const auto image = default_image(ServerApi::Tei, &volta, false);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(image.error().message,
            "no image of TEI is published for compute capability 7.0; --image can name another");
  ContainerDevice amd;
  amd.kind = ContainerDeviceKind::Rocm;
  EXPECT_FALSE(default_image(ServerApi::Tei, &amd, false));
  const auto hopper = with_capability(90);
  EXPECT_FALSE(default_image(ServerApi::Tei, &hopper, true));
  EXPECT_FALSE(default_image(ServerApi::Tgi, &hopper, true));
}

TEST(DefaultImage, KnowsAmdAndTheProcessor) {
  ContainerDevice amd;
  amd.kind = ContainerDeviceKind::Cdi;
  amd.id = "amd.com/gpu=0";
  EXPECT_EQ(*default_image(ServerApi::Vllm, &amd, false), "vllm/vllm-openai-rocm:v0.22.0");
  EXPECT_EQ(*default_image(ServerApi::Tgi, &amd, false),
            "ghcr.io/huggingface/text-generation-inference:3.3.5-rocm");
  EXPECT_EQ(*default_image(ServerApi::Vllm, nullptr, false), "vllm/vllm-openai-cpu:v0.22.0-x86_64");
  EXPECT_EQ(*default_image(ServerApi::Muster, nullptr, false), "muster:" + std::string(version()));
}

TEST(ExampleQuery, IsJsonWithTheModelsOwnName) {
  const auto query = example_query(ServerApi::Vllm, "org/\"odd\"");
  EXPECT_EQ(query.path, "/v1/completions");
  EXPECT_EQ(nlohmann::json::parse(query.body)["model"], "org/\"odd\"");
  EXPECT_EQ(example_query(ServerApi::Tei, "m").path, "/embed");
  EXPECT_EQ(example_query(ServerApi::Tgi, "m").path, "/generate");
}

TEST(IsMig, KnowsASliceByEveryName) {
  const auto cdi = [](const std::string& id) {
    ContainerDevice device;
    device.kind = ContainerDeviceKind::Cdi;
    device.id = id;
    return is_mig(device);
  };
  EXPECT_TRUE(cdi("nvidia.com/gpu=0:1"));
  EXPECT_TRUE(cdi("nvidia.com/gpu=MIG-11"));
  EXPECT_FALSE(cdi("nvidia.com/gpu=0"));
  EXPECT_FALSE(cdi("nvidia.com/gpu=GPU-11"));
}

}  // namespace
}  // namespace muster
