// What a real docker client asks a daemon for (stand_ins/fake_docker/record_pairs.py), beside the
// words that are given to it here.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "deploy/docker_run.h"

namespace muster {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

json recorded_pairs() {
  std::ifstream file(MUSTER_SOURCE_DIR "/stand_ins/fake_docker/recorded_pairs.json");
  return json::parse(file)["pairs"];
}

// What the client asked for when it was given these words; null if it never was.
json asked_for(const Words& words) {
  for (const auto& pair : recorded_pairs()) {
    if (pair["words"] == words) return pair["asked"];
  }
  return nullptr;
}

Words device_words_for(const std::vector<ContainerDevice>& devices) {
  ContainerRequest request;
  request.api = ServerApi::Vllm;
  request.model = "org/model";
  request.devices = devices;
  const auto planned = plan_deployment(request);
  EXPECT_TRUE(planned) << (planned ? "" : planned.error().message);
  if (!planned) return {};
  const auto all = docker_run_words(*planned, planned->containers.front());
  EXPECT_TRUE(all) << (all ? "" : all.error().message);
  Words words;
  for (std::size_t i = 0; all && i + 1 < all->size(); ++i) {
    for (const auto* flag : {"--gpus", "--device", "--group-add", "--cap-add", "--security-opt"}) {
      if ((*all)[i] == flag) words.insert(words.end(), {(*all)[i], (*all)[i + 1]});
    }
  }
  return words;
}

std::vector<ContainerDevice> devices(ContainerDeviceKind kind, const Words& ids) {
  std::vector<ContainerDevice> result;
  for (const auto& id : ids) {
    result.emplace_back();
    result.back().kind = kind;
    result.back().id = id;
  }
  return result;
}

TEST(RecordedPairs, TheClientAsksForExactlyTheGivenGpus) {
  const std::string end = "-0000-0000-0000-000000000000";
  for (const auto& ids : {Words{"2"}, Words{"0", "2"}, Words{"GPU-00000001" + end},
                          Words{"GPU-00000002" + end, "GPU-00000000" + end},
                          Words{"GPU-00000000" + end, "GPU-00000001" + end, "GPU-00000002" + end,
                                "GPU-00000003" + end}}) {
    const auto asked = asked_for(device_words_for(devices(ContainerDeviceKind::Nvidia, ids)));
    ASSERT_FALSE(asked.is_null()) << ids.front();
    ASSERT_EQ(asked["requests"].size(), 1U);
    EXPECT_EQ(asked["requests"][0]["ids"], json(ids));
    EXPECT_EQ(asked["requests"][0]["count"], 0) << "a count beside ids is refused by the daemon";
  }
}

TEST(RecordedPairs, TheClientAsksForSlicesCdiDevicesAndRenderNodes) {
  const Words slice{"MIG-11111111-2222-3333-4444-555555555555"};
  EXPECT_EQ(
      asked_for(device_words_for(devices(ContainerDeviceKind::Mig, slice)))["requests"][0]["ids"],
      json(slice));
  const Words cdi{"nvidia.com/gpu=2", "nvidia.com/gpu=0"};
  const auto by_cdi = asked_for(device_words_for(devices(ContainerDeviceKind::Cdi, cdi)));
  EXPECT_EQ(by_cdi["requests"][0]["ids"], json(cdi));
  EXPECT_EQ(by_cdi["requests"][0]["driver"], "cdi");
  const auto by_file = asked_for(device_words_for(
      devices(ContainerDeviceKind::Rocm, {"/dev/dri/renderD128", "/dev/dri/renderD130"})));
  EXPECT_TRUE(by_file["requests"].empty());
  EXPECT_EQ(by_file["files"], json({"/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD130"}));
  EXPECT_TRUE(asked_for(device_words_for({}))["requests"].empty());
}

// Why the quotes are there: what the same list asks for without them.
TEST(RecordedPairs, WithoutQuotesTheClientAsksForACount) {
  const auto asked = asked_for({"--gpus", "device=0,2"});
  EXPECT_EQ(asked["requests"][0]["ids"], json({"0"}));
  EXPECT_EQ(asked["requests"][0]["count"], 2);
}

}  // namespace
}  // namespace muster
