#include "deploy/kubernetes_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

ContainerDevice device(ContainerDeviceKind kind, const std::string& profile = "") {
  ContainerDevice result;
  result.kind = kind;
  result.mig_profile = profile;
  return result;
}

Result<std::string> text_for(ServerApi api, std::vector<ContainerDevice> devices,
                             std::vector<ContainerVolume> volumes = {},
                             std::vector<EnvironmentVariable> environment = {}) {
  ContainerRequest request;
  request.api = api;
  request.model = "org/model";
  request.devices = std::move(devices);
  request.volumes = std::move(volumes);
  request.environment = std::move(environment);
  return kubernetes_text(MUSTER_TRY(plan_deployment(request)));
}

TEST(KubernetesText, AsksForACountInLimits) {
  const std::vector<ContainerDevice> four(4, device(ContainerDeviceKind::Nvidia));
  const auto text = text_for(ServerApi::Vllm, four);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_NE(text->find("          resources:\n"
                       "            limits:\n"
                       "              nvidia.com/gpu: 4\n"),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find("  replicas: 1\n"), std::string::npos);
  EXPECT_NE(text->find("enableServiceLinks: false"), std::string::npos);
  EXPECT_EQ(text->find("CUDA_VISIBLE_DEVICES"), std::string::npos);
}

TEST(KubernetesText, FillsMustersVolumeInEachPod) {
  const auto text = text_for(ServerApi::Muster, {});
  ASSERT_TRUE(text);
  const auto has = [&](const std::string& part) {
    EXPECT_NE(text->find(part), std::string::npos) << part << " is not in\n" << *text;
  };
  has("      terminationGracePeriodSeconds: 35\n      initContainers:\n        - name: first\n");
  has("          args:\n            - pull\n            - org/model\n");
  has("      containers:\n        - name: server\n");
  has("              path: /readyz\n");
  EXPECT_LT(text->find("initContainers"), text->find("      containers:\n"));
}

TEST(KubernetesText, MountsMemoryAtDevShm) {
  const auto text = text_for(ServerApi::Vllm, {device(ContainerDeviceKind::Nvidia)});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("        - name: shm\n"
                       "          emptyDir:\n"
                       "            medium: Memory\n"
                       "            sizeLimit: \"2Gi\"\n"),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find("            - name: shm\n              mountPath: /dev/shm\n"),
            std::string::npos);
}

TEST(KubernetesText, MakesReplicasOfServersThatTakeOneGpu) {
  const std::vector<ContainerDevice> three(3, device(ContainerDeviceKind::Nvidia));
  const auto text = text_for(ServerApi::Tei, three);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("  replicas: 3\n"), std::string::npos);
  EXPECT_NE(text->find("nvidia.com/gpu: 1\n"), std::string::npos);
}

TEST(KubernetesText, NamesMigSlicesByProfile) {
  const std::vector<ContainerDevice> two(2, device(ContainerDeviceKind::Mig, "1g.5gb"));
  const auto text = text_for(ServerApi::Vllm, two);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_NE(text->find("nvidia.com/mig-1g.5gb: 1\n"), std::string::npos);
  EXPECT_NE(text->find("  replicas: 2\n"), std::string::npos);
  const auto unknown = text_for(ServerApi::Vllm, {device(ContainerDeviceKind::Mig)});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::InvalidArgument);
}

TEST(KubernetesText, KnowsAmd) {
  auto amd = device(ContainerDeviceKind::Rocm);
  amd.id = "/dev/dri/renderD128";
  const auto text = text_for(ServerApi::Vllm, {amd});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_NE(text->find("amd.com/gpu: 1\n"), std::string::npos);
}

TEST(KubernetesText, TurnsVolumesIntoClaimsAndFolders) {
  const auto text =
      text_for(ServerApi::Tgi, {}, {{"models", "/data", false}, {"/srv/x", "/x", true}});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("persistentVolumeClaim:\n            claimName: models\n"),
            std::string::npos);
  EXPECT_NE(text->find("hostPath:\n            path: /srv/x\n"), std::string::npos);
  EXPECT_NE(text->find("readOnly: true"), std::string::npos);
}

TEST(KubernetesText, DoublesDollarsSoThatNothingIsPutIn) {
  const auto text = text_for(ServerApi::Tei, {}, {}, {{"TOKEN", "$(HOME)"}});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("value: \"$$(HOME)\"\n"), std::string::npos) << *text;
}

}  // namespace
}  // namespace muster
