#include "sweep/sweep_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace muster {
namespace {

using K = SweepKey;

SweepConfig config_of(const std::string& text) {
  auto config = SweepConfig::read(text, "b.yaml", {});
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

std::vector<SweepPoint> points_of(const std::string& text, const SweepFacts& facts) {
  auto points = sweep_points(config_of(text), facts);
  EXPECT_TRUE(points) << points.error().message;
  return points ? *points : std::vector<SweepPoint>();
}

std::string refusal(const std::string& text, const SweepFacts& facts) {
  const auto points = sweep_points(config_of(text), facts);
  EXPECT_FALSE(points) << text;
  return points ? "" : points.error().message;
}

const std::string kSweep =
    "backend: {model: m, device: cpu, device_ids: [[0], [0, 1]], torch_dtype: [fp32, bf16]}\n"
    "scenario: {num_samples: 64, input_shapes: {batch_size: [1, 8, 32]}}\n";

TEST(SweepPoints, AreEveryCombinationInAnOrderThatTheSeedFixes) {
  const auto points = points_of(kSweep, {.task = "embed"});
  ASSERT_EQ(points.size(), 12U);
  std::set<std::string> ids;
  std::set<std::string> labels;
  for (const auto& point : points) {
    EXPECT_EQ(point.id.size(), 16U);
    ids.insert(point.id);
    labels.insert(point.label);
  }
  EXPECT_EQ(ids.size(), 12U);
  EXPECT_TRUE(labels.contains("device_ids=[cpu:0,cpu:1] torch_dtype=bf16 batch_size=32"));
  const auto again = points_of(kSweep, {.task = "embed"});
  const auto other = points_of(kSweep + "name: b\n", {.task = "embed"});
  const auto numbers = [](const std::vector<SweepPoint>& all) {
    std::vector<std::size_t> order;
    for (const auto& point : all) order.push_back(point.number);
    return order;
  };
  EXPECT_EQ(numbers(points), numbers(again));
  EXPECT_EQ(numbers(points), numbers(other)) << "the seed alone decides";
  EXPECT_FALSE(std::ranges::is_sorted(numbers(points))) << "they are shuffled";
}

TEST(SweepPoints, ResolveEverySetting) {
  const auto points = points_of("backend: {model: m}\n", {.task = "embed"});
  ASSERT_EQ(points.size(), 1U);
  const auto& point = points.front();
  EXPECT_EQ(point.label, "");
  EXPECT_EQ(point.at(K::BackendType), "muster");
  EXPECT_EQ(point.at(K::Task), "embed");
  EXPECT_EQ(point.at(K::DeviceIds), "auto");
  EXPECT_EQ(point.at(K::TorchDtype), "auto");
  EXPECT_EQ(point.at(K::NumSamples), "100");
  EXPECT_EQ(point.at(K::BatchSize), "1");
  EXPECT_EQ(point.at(K::MaxNewTokens), "") << "it means nothing here";
  EXPECT_EQ(points_of("backend: {model: m}\n", {.task = "generate"}).front().at(K::MaxNewTokens),
            "100");
  const auto remote = points_of("backend: {url: \"http://h:1\"}\n", {.task = "generate"}).front();
  EXPECT_EQ(remote.at(K::DeviceIds), "");
  EXPECT_EQ(remote.at(K::TorchDtype), "");
}

// Each change of what is measured is another point, also of a key that is swept nowhere; what only
// says where results go is not.
TEST(SweepPoints, AreKnownByAllThatTheyDependOn) {
  const std::string base = "backend: {model: m}\nscenario: {num_samples: 5}\n";
  const auto id = [](const std::string& text, const SweepFacts& facts) {
    return points_of(text, facts).front().id;
  };
  const SweepFacts facts{.task = "embed", .models = {{"m", "model.safetensors:10"}}};
  const auto first = id(base, facts);
  EXPECT_EQ(id(base + "reporter: {output_file: other.csv}\noutput_dir: o\n", facts), first);
  EXPECT_EQ(id("scenario: {num_samples: 5}\nbackend: {model: m, type: pytorch}\n", facts), first);
  EXPECT_NE(id("backend: {model: m}\nscenario: {num_samples: 6}\n", facts), first);
  EXPECT_NE(id(base + "name: another\n", facts), first);
  EXPECT_NE(id(base + "metrics: {enabled: false}\n", facts), first);
  auto other_files = facts;
  other_files.models["m"] = "model.safetensors:11";
  EXPECT_NE(id(base, other_files), first);
  auto other_settings = facts;
  other_settings.settings = "--batch-tokens=512";
  EXPECT_NE(id(base, other_settings), first) << "the server would be another";
  auto other_build = facts;
  other_build.build = "0.1.0 (abc)";
  EXPECT_NE(id(base, other_build), first) << "so would it be here";
  auto other_torch = facts;
  other_torch.torch = "2.11.1";
  EXPECT_NE(id(base, other_torch), first);
  auto other_machine = facts;
  other_machine.machines["auto"] = "AMD EPYC";
  EXPECT_NE(id(base, other_machine), first) << "its cpu:0 is another";
  other_machine.machines = {{"cuda:0", "H200 GPU-1"}};
  EXPECT_EQ(id(base, other_machine), first) << "that is none of its devices";
  auto other_devices = facts;
  other_devices.devices["auto"] = "cuda:0";
  EXPECT_NE(id(base, other_devices), first);
  const std::string data = "backend: {model: m}\nscenario: {num_samples: 5, dataset_name: a.txt}\n";
  EXPECT_NE(id(data, {.task = "embed", .texts_hash = "a", .text_count = 9}),
            id(data, {.task = "embed", .texts_hash = "b", .text_count = 9}));
}

// A server that has another model tomorrow has other points.
TEST(SweepPoints, AreKnownByTheModelThatAServerLists) {
  const std::string text = "backend: {url: \"http://h:1\"}\n";
  const auto first = points_of(text, {.task = "embed", .served_model = "a"}).front();
  EXPECT_EQ(first.at(K::Model), "a");
  EXPECT_NE(points_of(text, {.task = "embed", .served_model = "b"}).front().id, first.id);
  EXPECT_EQ(points_of("backend: {url: \"http://h:1\", model: a}\n", {.task = "embed"}).front().id,
            first.id)
      << "whoever has named it";
}

TEST(SweepPoints, TakeAsManyTextsAsTheDataSetHas) {
  const std::string data = "backend: {model: m}\nscenario:\n  dataset_name: a.txt\n";
  EXPECT_EQ(points_of(data, {.task = "embed", .text_count = 7}).front().at(K::NumSamples), "7");
  EXPECT_EQ(refusal(data, {.task = "embed"}), "b.yaml:3: scenario.dataset_name has no text: a.txt");
  EXPECT_EQ(refusal(data + "  num_samples: 10\n", {.task = "embed", .text_count = 5}),
            "b.yaml:4: scenario.num_samples asks for 10 texts, and a.txt has 5");
}

// From 20,000 on the requests would begin again, and a server may have kept their answers.
TEST(SweepPoints, AreOfMadeTextsThatComeOnce) {
  const std::string most = "backend: {model: m}\nscenario: {num_samples: 20000}\n";
  EXPECT_EQ(points_of(most, {.task = "embed"}).front().at(K::NumSamples), "20000");
  EXPECT_EQ(refusal("backend: {model: m}\nscenario: {num_samples: 20001}\n", {.task = "embed"}),
            "b.yaml:2: scenario.num_samples asks for 20001 made texts, and beyond 20000 they begin "
            "again, which a cache answers: name a file by scenario.dataset_name");
  EXPECT_EQ(refusal("backend: {model: m}\nscenario:\n  num_samples: 2000\n  input_shapes: "
                    "{sequence_length: [8, 32000]}\n",
                    {.task = "embed"}),
            "b.yaml:4: scenario.input_shapes.sequence_length makes 2000 texts of about 179 kB, 358 "
            "MB together, and beyond 256 MB they begin again, which a cache answers: name a file "
            "by scenario.dataset_name");
  const std::string data =
      "backend: {model: m}\nscenario: {num_samples: 20001, dataset_name: a.txt}\n";
  EXPECT_EQ(points_of(data, {.task = "embed", .text_count = 30'000}).front().at(K::NumSamples),
            "20001");
}

TEST(SweepPoints, RefuseASweepThatCannotBe) {
  EXPECT_EQ(refusal("backend: {model: m}\n"
                    "scenario: {num_samples: 10, input_shapes: {batch_size: [1, 64]}}\n",
                    {.task = "embed"}),
            "b.yaml:2: scenario.input_shapes.batch_size wants 64 texts at once, and there are 10");
  EXPECT_EQ(refusal("backend: {model: m}\n"
                    "scenario: {num_samples: 1}\n",
                    {.task = "rerank"}),
            "b.yaml: scenario.input_shapes.batch_size wants 2 texts at once, and there is 1")
      << "a query and a document";
  const auto with_clients = [](const std::string& clients) {
    return "backend: {model: m}\nscenario: {num_samples: 64, clients: " + clients +
           ", input_shapes: {batch_size: 8}}\n";
  };
  EXPECT_EQ(refusal(with_clients("[1, 16]"), {.task = "embed"}),
            "b.yaml:2: scenario.clients asks for 16 requests at once, and there are 8, of 8 texts "
            "each");
  EXPECT_EQ(points_of(with_clients("[1, 8]"), {.task = "embed"}).size(), 2U);
  std::string many;
  for (int i = 1; i <= 101; ++i) many += (i > 1 ? "," : "") + std::to_string(i);
  EXPECT_EQ(refusal("backend: {model: m}\nscenario: {num_samples: 1000, clients: [" + many +
                        "], input_shapes: {batch_size: [" + many + "]}}\n",
                    {.task = "embed"}),
            "the sweep has more than 10000 points");
}

// [0] and [0, 3] without a third device are the same point; [3] alone is none.
TEST(SweepPoints, LeaveOutWhatIsMissing) {
  const auto points =
      points_of("backend: {model: m, device_ids: [[0], [0, 3], [3]]}\n",
                {.task = "embed",
                 .devices = {{"cuda:0", "cuda:0"}, {"cuda:0,cuda:3", "cuda:0"}, {"cuda:3", ""}}});
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points.front().at(K::DeviceIds), "cuda:0");
}

TEST(NamedDevices, SayWhereTheyStand) {
  const auto named = named_devices(config_of(
      "backend:\n  model: m\n  device: cpu\n  device_ids: [[0], ['2xcpu'], [0, cuda:1]]\n"));
  ASSERT_EQ(named.size(), 3U);
  EXPECT_EQ(named[0].list, "cpu:0");
  EXPECT_EQ(named[1].list, "2xcpu");
  EXPECT_EQ(named[2].list, "cpu:0,cuda:1");
  EXPECT_EQ(named[2].place, "b.yaml:4: backend.device_ids");
  EXPECT_EQ(named_devices(config_of("backend: {model: m, device_ids: \"0, 1\"}\n")).front().list,
            "cuda:0,cuda:1");
  EXPECT_EQ(named_devices(config_of("backend: {model: m, device: gpu}\n")).front().list, "cuda");
  EXPECT_EQ(named_devices(config_of("backend: {model: m}\n")).front().list, "auto");
  EXPECT_TRUE(named_devices(config_of("backend: {url: \"http://h\"}\n")).empty());
}

TEST(LoadOf, CountsRequestsOfEachTask) {
  SweepPoint point;
  point.at(K::NumSamples) = "100";
  point.at(K::BatchSize) = "32";
  EXPECT_EQ(load_of(point, "embed").requests, 4U);  // 3 x 32, and 4 filled up
  EXPECT_EQ(load_of(point, "embed").texts_per_request, 32U);
  EXPECT_EQ(load_of(point, "rerank").requests, 4U);  // of 33 with their queries
  EXPECT_EQ(load_of(point, "generate").requests, 100U);
  EXPECT_EQ(load_of(point, "generate").texts_per_request, 1U);
}

}  // namespace
}  // namespace muster
