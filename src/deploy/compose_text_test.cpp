#include "deploy/compose_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

Deployment plan(ServerApi api, std::vector<ContainerDevice> devices,
                std::vector<EnvironmentVariable> environment = {}) {
  ContainerRequest request;
  request.api = api;
  request.model = "org/model";
  request.devices = std::move(devices);
  request.environment = std::move(environment);
  const auto planned = plan_deployment(request);
  EXPECT_TRUE(planned) << (planned ? "" : planned.error().message);
  return planned ? *planned : Deployment{};
}

ContainerDevice device(ContainerDeviceKind kind, const std::string& id) {
  ContainerDevice result;
  result.kind = kind;
  result.id = id;
  result.model = "one and the same";
  return result;
}

TEST(ComposeText, FillsMustersVolumeBeforeItStarts) {
  const auto text = compose_text(plan(ServerApi::Muster, {}));
  ASSERT_TRUE(text);
  const auto has = [&](const std::string& part) {
    EXPECT_NE(text->find(part), std::string::npos) << part << " is not in\n" << *text;
  };
  has("  muster-muster-model-first:\n");
  has("    command:\n      - pull\n      - org/model\n");
  has("    depends_on:\n      muster-muster-model-first:\n"
      "        condition: service_completed_successfully\n");
  has("    healthcheck:\n      test:\n        - CMD\n        - curl\n        - \"-fsS\"\n"
      "        - \"http://127.0.0.1:8000/readyz\"\n      start_period: 10m\n");
  has("    stop_grace_period: 35s\n");
}

TEST(ComposeText, ReservesTheDevicesById) {
  const auto text = compose_text(plan(ServerApi::Tgi, {device(ContainerDeviceKind::Nvidia, "0"),
                                                       device(ContainerDeviceKind::Nvidia, "2")}));
  ASSERT_TRUE(text);
  // Ids are strings: compose refuses numbers. `count` must not stand beside them.
  EXPECT_EQ(*text,
            "name: muster-tgi-model\n"
            "services:\n"
            "  muster-tgi-model:\n"
            "    image: \"ghcr.io/huggingface/text-generation-inference:3.3.5\"\n"
            "    container_name: muster-tgi-model\n"
            "    labels:\n"
            "      muster.deployment: muster-tgi-model\n"
            "      muster.api: tgi\n"
            "      muster.model: org/model\n"
            "    command:\n"
            "      - \"--model-id\"\n"
            "      - org/model\n"
            "      - \"--num-shard\"\n"
            "      - \"2\"\n"
            "    ports:\n"
            "      - \"127.0.0.1:8080:80\"\n"
            "    volumes:\n"
            "      - \"muster-hub:/data\"\n"
            "    shm_size: \"1g\"\n"
            "    deploy:\n"
            "      resources:\n"
            "        reservations:\n"
            "          devices:\n"
            "            - driver: nvidia\n"
            "              device_ids:\n"
            "                - \"0\"\n"
            "                - \"2\"\n"
            "              capabilities:\n"
            "                - gpu\n"
            "volumes:\n"
            "  muster-hub:\n"
            "    name: muster-hub\n");
}

TEST(ComposeText, AsksForCdiDevicesByTheirDriver) {
  const auto text =
      compose_text(plan(ServerApi::Vllm, {device(ContainerDeviceKind::Cdi, "nvidia.com/gpu=1")}));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("- driver: cdi\n              device_ids:\n"
                       "                - nvidia.com/gpu=1\n"),
            std::string::npos)
      << *text;
}

TEST(ComposeText, GivesAmdItsFilesAndGroups) {
  const auto text = compose_text(
      plan(ServerApi::Vllm, {device(ContainerDeviceKind::Rocm, "/dev/dri/renderD128")}));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("    devices:\n"
                       "      - \"/dev/kfd:/dev/kfd\"\n"
                       "      - \"/dev/dri/renderD128:/dev/dri/renderD128\"\n"
                       "    group_add:\n"
                       "      - video\n"
                       "    cap_add:\n"
                       "      - SYS_PTRACE\n"
                       "    security_opt:\n"
                       "      - seccomp=unconfined\n"),
            std::string::npos)
      << *text;
  EXPECT_EQ(text->find("reservations"), std::string::npos);
}

TEST(ComposeText, DoublesDollarsSoThatNothingIsPutIn) {
  const auto text = compose_text(plan(ServerApi::Tei, {}, {{"TOKEN", "a$b${HOME}"}}));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("      TOKEN: \"a$$b$${HOME}\"\n"), std::string::npos) << *text;
}

TEST(ComposeText, MakesAServiceForEachReplica) {
  const auto text =
      compose_text(plan(ServerApi::Tei, {device(ContainerDeviceKind::Nvidia, "GPU-aa"),
                                         device(ContainerDeviceKind::Nvidia, "GPU-bb")}));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("  muster-tei-model-0:\n"), std::string::npos);
  EXPECT_NE(text->find("  muster-tei-model-1:\n"), std::string::npos);
  EXPECT_NE(text->find("127.0.0.1:8081:80"), std::string::npos);
}

TEST(ComposeText, RefusesADeviceWithoutAName) {
  EXPECT_FALSE(compose_text(plan(ServerApi::Tgi, {device(ContainerDeviceKind::Nvidia, "")})));
}

}  // namespace
}  // namespace muster
