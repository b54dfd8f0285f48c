#include "deploy/docker_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "deploy/device_order.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

ContainerDevice device(ContainerDeviceKind kind, const std::string& id,
                       std::optional<std::uint32_t> place = {}) {
  return {.kind = kind,
          .id = id,
          .host_place = place,
          .model = "NVIDIA A10G",
          .compute_capability = 86,
          .mig_profile = ""};
}

ContainerDevice gpu(std::uint32_t place) {
  return device(ContainerDeviceKind::Nvidia, std::to_string(place), place);
}

Words run_words(const std::vector<ContainerDevice>& devices, ServerApi api = ServerApi::Vllm) {
  ContainerRequest request;
  request.api = api;
  request.model = "org/model";
  request.devices = devices;
  const auto planned = plan_deployment(request);
  EXPECT_TRUE(planned) << (planned ? "" : planned.error().message);
  if (!planned) return {};
  const auto words = docker_run_words(*planned, planned->containers.front());
  EXPECT_TRUE(words) << (words ? "" : words.error().message);
  return words ? *words : Words{};
}

// The values that follow each `flag`.
Words values_of(const Words& words, const std::string& flag) {
  Words values;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == flag) values.push_back(words[i + 1]);
  }
  return values;
}

TEST(DockerRun, IsOneWordAnArgument) {
  const auto words = run_words({gpu(2)});
  const Words expected{"docker",
                       "run",
                       "--detach",
                       "--name",
                       "muster-vllm-model",
                       "--label",
                       "muster.deployment=muster-vllm-model",
                       "--label",
                       "muster.api=vllm",
                       "--label",
                       "muster.model=org/model",
                       "--gpus",
                       "device=2",
                       "--shm-size",
                       "2g",
                       "--volume",
                       "muster-huggingface:/root"
                       "/.cache/huggingface",
                       "--publish",
                       "127.0.0.1:8080:8000",
                       "vllm/vllm-openai:v0.22.0",
                       "--model",
                       "org/model"};
  EXPECT_EQ(words, expected);
}

// The client takes device=0,2 for one device and a count of 2 (nvidia-docker #1026, #1257), so the
// quotes belong to the argument.
TEST(DockerRun, QuotesSeveralDevicesForTheClientsCsvReader) {
  EXPECT_EQ(values_of(run_words({gpu(0), gpu(2)}), "--gpus"), (Words{"\"device=0,2\""}));
  const auto uuids = run_words({device(ContainerDeviceKind::Nvidia, "GPU-aa", 0),
                                device(ContainerDeviceKind::Nvidia, "GPU-bb", 1)});
  EXPECT_EQ(values_of(uuids, "--gpus"), (Words{"\"device=GPU-aa,GPU-bb\""}));
}

TEST(DockerRun, NamesEachCdiDevice) {
  const auto words = run_words({device(ContainerDeviceKind::Cdi, "nvidia.com/gpu=0"),
                                device(ContainerDeviceKind::Cdi, "nvidia.com/gpu=3")});
  EXPECT_EQ(values_of(words, "--device"), (Words{"nvidia.com/gpu=0", "nvidia.com/gpu=3"}));
  EXPECT_TRUE(values_of(words, "--gpus").empty());
}

TEST(DockerRun, GivesAmdTheRenderNodesAlone) {
  ContainerRequest request;
  request.api = ServerApi::Vllm;
  request.model = "org/model";
  request.devices = {device(ContainerDeviceKind::Rocm, "/dev/dri/renderD128", 0),
                     device(ContainerDeviceKind::Rocm, "/dev/dri/renderD130", 2)};
  request.group_ids = {44, 109};
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned) << planned.error().message;
  const auto words = docker_run_words(*planned, planned->containers.front());
  ASSERT_TRUE(words);
  EXPECT_EQ(values_of(*words, "--device"),
            (Words{"/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD130"}));
  EXPECT_EQ(values_of(*words, "--group-add"), (Words{"44", "109"}));
  EXPECT_EQ(values_of(*words, "--cap-add"), (Words{"SYS_PTRACE"}));
  EXPECT_EQ(values_of(*words, "--security-opt"), (Words{"seccomp=unconfined"}));
  EXPECT_TRUE(values_of(*words, "--gpus").empty());
  EXPECT_NE(std::find(words->begin(), words->end(), "vllm/vllm-openai-rocm:v0.22.0"), words->end());
}

TEST(DockerRun, AsksMusterWhetherItIsReadyAndFillsItsVolumeFirst) {
  ContainerRequest request;
  request.api = ServerApi::Muster;
  request.model = "org/model";
  request.image = "muster:1";
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned);
  EXPECT_EQ(first_run_words(*planned),
            (Words{"docker", "run", "--rm", "--env", "NVIDIA_VISIBLE_DEVICES=void", "--env",
                   "HF_HUB_CACHE=/data", "--volume", "muster-hub:/data", "muster:1", "pull",
                   "org/model"}));
  const auto words = docker_run_words(*planned, planned->containers.front());
  ASSERT_TRUE(words);
  EXPECT_EQ(values_of(*words, "--health-cmd"), (Words{"curl -fsS http://127.0.0.1:8000/readyz"}));
  EXPECT_EQ(values_of(*words, "--health-start-period"), (Words{"10m"}));
  EXPECT_EQ(values_of(*words, "--stop-timeout"), (Words{"35"}));
  EXPECT_EQ(values_of(*words, "--publish"), (Words{"127.0.0.1:8080:8000"}));
  request.api = ServerApi::Tei;
  EXPECT_TRUE(first_run_words(*plan_deployment(request)).empty());
}

TEST(DockerRun, WithoutDevicesAsksForNone) {
  const auto words = run_words({}, ServerApi::Tei);
  EXPECT_TRUE(values_of(words, "--gpus").empty());
  EXPECT_TRUE(values_of(words, "--device").empty());
  EXPECT_EQ(values_of(words, "--env"), (Words{"NVIDIA_VISIBLE_DEVICES=void"}));
}

TEST(DockerRun, PutsAnIpv6AddressInBrackets) {
  ContainerRequest request;
  request.model = "org/model";
  request.host = "::1";
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned);
  EXPECT_EQ(published_port(*planned, planned->containers.front()), "[::1]:8080:80");
}

TEST(DockerRun, RefusesADeviceWithoutAName) {
  ContainerRequest request;
  request.model = "org/model";
  request.devices = {ContainerDevice{}};
  const auto planned = plan_deployment(request);
  ASSERT_TRUE(planned) << planned.error().message;
  const auto words = docker_run_words(*planned, planned->containers.front());
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().kind, ErrorKind::InvalidArgument);
}

TEST(MemorySizeText, UsesTheLargestUnitThatDivides) {
  EXPECT_EQ(memory_size_text(1ULL << 30), "1g");
  EXPECT_EQ(memory_size_text(1536ULL << 20), "1536m");
  EXPECT_EQ(memory_size_text(3072), "3k");
  EXPECT_EQ(memory_size_text(1000), "1000");
}

// Order 0,2,1,3 keeps NVLink pairs together (vLLM #7958): it cannot be had by listing them so.
TEST(InnerOrder, IsImposedByNumbersOfTheContainer) {
  const std::vector<ContainerDevice> devices{gpu(4), gpu(6), gpu(5), gpu(7)};
  const auto order = inner_order(devices);
  EXPECT_EQ(order.container_index, (std::vector<std::uint32_t>{0, 2, 1, 3}));
  ASSERT_EQ(order.environment.size(), 2U);
  EXPECT_EQ(order.environment[0].name, "CUDA_DEVICE_ORDER");
  EXPECT_EQ(order.environment[0].value, "PCI_BUS_ID");
  EXPECT_EQ(order.environment[1].name, "CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(order.environment[1].value, "0,2,1,3");
}

TEST(InnerOrder, SetsNothingForEqualGpusInPciOrder) {
  const std::vector<ContainerDevice> devices{gpu(1), gpu(3)};
  EXPECT_TRUE(inner_order(devices).environment.empty());
}

TEST(InnerOrder, KeepsCudaFromSortingUnequalGpusBySpeed) {
  auto slow = gpu(0);
  slow.model = "Tesla T4";
  const std::vector<ContainerDevice> devices{slow, gpu(1)};
  const auto order = inner_order(devices);
  ASSERT_EQ(order.environment.size(), 1U);
  EXPECT_EQ(order.environment[0].name, "CUDA_DEVICE_ORDER");
}

TEST(InnerOrder, UsesTheNameThatRocmReads) {
  const std::vector<ContainerDevice> devices{
      device(ContainerDeviceKind::Rocm, "/dev/dri/renderD129", 1),
      device(ContainerDeviceKind::Rocm, "/dev/dri/renderD128", 0)};
  const auto order = inner_order(devices);
  ASSERT_EQ(order.environment.size(), 1U);
  EXPECT_EQ(order.environment[0].name, "HIP_VISIBLE_DEVICES");
  EXPECT_EQ(order.environment[0].value, "1,0");
}

// What the machine does with the words, written apart from the code: the client's CSV record, the
// runtime that hands over the named GPUs in PCI order, CUDA that reads its two variables.
class Container {
 public:
  explicit Container(const Words& words) {
    for (const auto& entry : values_of(words, "--env")) {
      const auto equals = entry.find('=');
      variables_[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
    auto field = values_of(words, "--gpus").at(0);
    if (field.front() == '"') {
      EXPECT_EQ(field.back(), '"');
      field = field.substr(1, field.size() - 2);
    } else {
      EXPECT_EQ(field.find(','), std::string::npos) << "a second field of the record";
    }
    EXPECT_TRUE(field.starts_with("device="));
    std::istringstream ids(field.substr(7));
    for (std::string id; std::getline(ids, id, ',');) {
      const auto place = static_cast<std::uint32_t>(std::stoul(id));
      EXPECT_TRUE(places_.insert(place).second) << "twice " << id;
    }
  }

  // The host's number of CUDA's device `index`.
  std::uint32_t host_of(std::uint32_t index) const {
    const std::vector<std::uint32_t> seen(places_.begin(), places_.end());  // ascending: PCI order
    const auto visible = variables_.find("CUDA_VISIBLE_DEVICES");
    if (visible == variables_.end()) return seen.at(index);
    EXPECT_EQ(variables_.at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
    std::istringstream numbers(visible->second);
    std::string number;
    for (std::uint32_t i = 0; i <= index; ++i) std::getline(numbers, number, ',');
    return seen.at(std::stoul(number));
  }

  const std::set<std::uint32_t>& places() const { return places_; }

 private:
  std::map<std::string, std::string> variables_;
  std::set<std::uint32_t> places_;
};

TEST(DeviceNumbering, LeadsBackToTheSameDeviceForEverySubsetAndOrder) {
  constexpr std::uint32_t kSeed = 20261121;
  std::mt19937 random(kSeed);
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  for (std::uint32_t subset = 1; subset < 256; ++subset) {
    std::vector<ContainerDevice> devices;
    for (std::uint32_t place = 0; place < 8; ++place) {
      if ((subset & (1U << place)) != 0) devices.push_back(gpu(place));
    }
    for (int round = 0; round < 6; ++round) {
      if (round > 0) std::shuffle(devices.begin(), devices.end(), random);
      const Container container(run_words(devices));
      ASSERT_EQ(container.places().size(), devices.size());
      for (std::uint32_t i = 0; i < devices.size(); ++i) {
        ASSERT_EQ(container.host_of(i), devices[i].host_place) << "subset " << subset;
      }
    }
  }
}

}  // namespace
}  // namespace muster
