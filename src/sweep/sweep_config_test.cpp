#include "sweep/sweep_config.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using K = SweepKey;

// The least that a file needs, in one line, so that what a test adds begins on the second.
const std::string kMuster = "backend: {model: m}\n";
const std::string kRemote = "backend: {url: \"http://h:1/v1\"}\n";

SweepConfig read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto config = SweepConfig::read(text, "b.yaml", overrides);
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : *SweepConfig::read(kMuster, "b.yaml", {});
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto config = SweepConfig::read(text, "b.yaml", overrides);
  EXPECT_FALSE(config) << text;
  return config ? "" : config.error().message;
}

TEST(SweepConfig, ReadsTheNamesOfDocumentOne) {
  const auto config = read(
      "name: run\n"
      "backend:\n"
      "  type: pytorch\n"
      "  device: cuda\n"
      "  device_ids: [0, 1]\n"
      "  device_map: auto\n"
      "  max_memory:\n"
      "    0: \"20GB\"\n"
      "    1: 20GB\n"
      "  torch_dtype: torch.bfloat16\n"
      "  model: org/name\n"
      "  task: text-generation\n"
      "scenario:\n"
      "  dataset_name: prompts.jsonl\n"
      "  text_column_name: prompt\n"
      "  num_samples: 10\n"
      "  reasoning: False\n"
      "  input_shapes: {batch_size: 1}\n"
      "  generate_kwargs: {max_new_tokens: 50, min_new_tokens: 50, temperature: 0.70}\n"
      "metrics: {type: codecarbon, enabled: true, project_name: p, country_iso_code: USA}\n"
      "reporter: {type: csv, output_file: ./results/x.csv}\n");
  EXPECT_FALSE(config.is_remote());
  EXPECT_EQ(config.text(K::BackendType), "muster");
  EXPECT_EQ(config.text(K::DeviceIds), "0,1");
  EXPECT_EQ(config.text(K::MaxMemory), "0=20GB,1=20GB");
  EXPECT_EQ(config.text(K::TorchDtype), "bf16");
  EXPECT_EQ(config.text(K::Task), "generate");
  EXPECT_EQ(config.text(K::Reasoning), "false");
  EXPECT_EQ(config.text(K::Temperature), "0.7");
  EXPECT_EQ(config.text(K::MetricsType), "counters");
  EXPECT_EQ(config.place_of(K::NumSamples), "b.yaml:16: scenario.num_samples");
  EXPECT_TRUE(config.check_task("generate"));
}

TEST(SweepConfig, TakesAListAsASweepOrAsDevices) {
  const auto config = read(
      "backend: {model: [a, b], device_ids: [[0], [0, 1], [2xcpu]], torch_dtype: [fp32, int8]}\n"
      "scenario: {input_shapes: {batch_size: [1, 8, 032]}}\n");
  EXPECT_EQ(config.at(K::Model).texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.at(K::DeviceIds).texts, (std::vector<std::string>{"0", "0,1", "2xcpu"}));
  EXPECT_EQ(config.at(K::TorchDtype).texts, (std::vector<std::string>{"fp32", "int8"}));
  EXPECT_EQ(config.at(K::BatchSize).texts, (std::vector<std::string>{"1", "8", "32"}));
  EXPECT_EQ(read("backend: {model: m, device_ids: [0, 1]}").at(K::DeviceIds).texts,
            std::vector<std::string>{"0,1"});
  EXPECT_EQ(read("backend: {model: m, device_ids: 2xcpu}").at(K::DeviceIds).texts,
            std::vector<std::string>{"2xcpu"});
}

TEST(SweepConfig, ChangesValuesByOverrides) {
  const auto config = read(
      kMuster + "scenario: {num_samples: 10}\n",
      {"scenario.num_samples=20", "backend.device_ids=[[0],[0,1]]", "backend.max_memory={0: 1GB}"});
  EXPECT_EQ(config.text(K::NumSamples), "20");
  EXPECT_EQ(config.at(K::DeviceIds).texts.size(), 2U);
  EXPECT_EQ(config.text(K::MaxMemory), "0=1GB");
  EXPECT_EQ(refusal(kMuster, {"scenario.num_samples"}),
            "\"scenario.num_samples\" changes no key: write it as scenario.num_samples=20");
  EXPECT_EQ(
      refusal(kMuster, {"scenario.num_samples=many"}),
      "command line: scenario.num_samples must be a whole number from 1 to 1000000: \"many\"");
  EXPECT_EQ(refusal(kMuster, {"num_samples=2"}),
            "command line: num_samples is not known; did you mean scenario.num_samples?");
  // As in a file: the last one would win without a word.
  EXPECT_EQ(refusal(kMuster, {"scenario.num_samples=5", "scenario.num_samples=6"}),
            "command line: scenario.num_samples stands twice");
}

TEST(SweepConfig, NamesTheNearestKey) {
  EXPECT_EQ(refusal(kMuster + "scenario:\n  num_sample: 3\n"),
            "b.yaml:3: scenario.num_sample is not known; did you mean scenario.num_samples?");
  EXPECT_EQ(refusal(kMuster + "scenario: {batch_size: 3}\n"),
            "b.yaml:2: scenario.batch_size is not known; did you mean "
            "scenario.input_shapes.batch_size?");
  EXPECT_EQ(refusal("backend:\n  model: m\n  trust_remote_code: true\n"),
            "b.yaml:3: backend.trust_remote_code: a model's own Python is never run");
  EXPECT_EQ(refusal(kMuster + "scenario: 3\n"),
            "b.yaml:2: scenario has keys of its own below it, and no value");
  EXPECT_EQ(refusal("backend: {url: \"http://h\", endpoint: \"http://h\"}\n"),
            "b.yaml:1: backend.url and b.yaml:1: backend.endpoint are the same key");
  EXPECT_EQ(refusal("- a\n"),
            "b.yaml: this is no benchmark: it wants backend, scenario and reporter; `muster bench "
            "init` writes one");
}

struct Case {
  std::string text;
  std::string message;
};

class SweepConfigRefusal : public ::testing::TestWithParam<Case> {};

TEST_P(SweepConfigRefusal, IsOneSentenceWithItsPlace) {
  EXPECT_EQ(refusal(GetParam().text), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Values, SweepConfigRefusal,
    ::testing::Values(
        Case{"backend:\n  model: m\n  torch_dtype: float61\n",
             "b.yaml:3: backend.torch_dtype must be one of auto, float32, bfloat16, float16, fp32, "
             "bf16, fp16, half, torch.float32, torch.bfloat16, torch.float16, int8: \"float61\"; "
             "did you mean float16?"},
        Case{kMuster + "scenario: {trials: [1, 2]}\n",
             "b.yaml:2: scenario.trials takes one value; a list is a sweep, of model, device_ids, "
             "torch_dtype, reasoning_effort, enable_thinking, batch_size, sequence_length, "
             "max_new_tokens, clients, rate"},
        Case{kMuster + "scenario: {input_shapes: {batch_size: []}}\n",
             "b.yaml:2: scenario.input_shapes.batch_size is an empty list: there would be nothing "
             "to measure"},
        Case{kMuster + "scenario: {input_shapes: {batch_size: [8, 1, 8]}}\n",
             "b.yaml:2: scenario.input_shapes.batch_size has 8 twice"},
        Case{kMuster + "scenario:\n  num_samples:\n",
             "b.yaml:3: scenario.num_samples has no value; leave the key out for its default"},
        Case{kMuster + "scenario: {num_samples: {a: 1}}\n",
             "b.yaml:2: scenario.num_samples takes plain values, not a mapping"},
        Case{"backend: {model: m, device_ids: [0, [1]]}\n",
             "b.yaml:1: backend.device_ids mixes devices and lists of devices: write [0]"},
        Case{"backend: {model: m, device_ids: [0, 1, 0]}\n",
             "b.yaml:1: backend.device_ids has 0 twice"},
        Case{"backend: {model: m, device_ids: [[]]}\n",
             "b.yaml:1: backend.device_ids is an empty list: there would be nothing to measure"},
        Case{"backend: {model: m, max_memory: 20GB}\n",
             "b.yaml:1: backend.max_memory must be a mapping of devices to sizes, as {0: 20GB, 1: "
             "20GB}"},
        Case{kMuster + "metrics: {enabled: maybe}\n",
             "b.yaml:2: metrics.enabled must be true or false: \"maybe\""},
        Case{kMuster + "scenario: {generate_kwargs: {temperature: nan}}\n",
             "b.yaml:2: scenario.generate_kwargs.temperature must be a number from 0 to 2: "
             "\"nan\""},
        Case{"backend: {model: \" \"}\n", "b.yaml:1: backend.model must be a line of text"}));

INSTANTIATE_TEST_SUITE_P(
    Backends, SweepConfigRefusal,
    ::testing::Values(
        Case{"scenario: {num_samples: 3}\n",
             "b.yaml: backend.model is missing: the model to measure, a folder, a hub id or a GGUF "
             "file"},
        Case{"backend: {type: vllm, model: m}\n",
             "b.yaml: backend.url is missing: the server's address, as http://127.0.0.1:8000/v1"},
        Case{"backend: {type: openai, url: \"127.0.0.1:8000\"}\n",
             "b.yaml:1: backend.url must be an address as http://127.0.0.1:8000/v1"},
        Case{"backend:\n  url: \"http://h:1\"\n  torch_dtype: auto\n",
             "b.yaml:3: backend.torch_dtype is the server's own affair: it runs already"},
        Case{"backend: {type: muster, model: m, url: \"http://h:1\"}\n",
             "b.yaml:1: backend.url is of a server that runs already, with backend.type openai"}));

INSTANTIATE_TEST_SUITE_P(
    Pairs, SweepConfigRefusal,
    ::testing::Values(
        Case{
            kMuster + "scenario: {text_column_name: a}\n",
            "b.yaml:2: scenario.text_column_name names a column of scenario.dataset_name, which is "
            "not given"},
        Case{kMuster + "scenario: {dataset_name: a.txt, input_shapes: {sequence_length: 8}}\n",
             "b.yaml:2: scenario.input_shapes.sequence_length is the length of made texts, and "
             "scenario.dataset_name has its own"},
        Case{kMuster + "scenario: {arrivals: poisson}\n",
             "b.yaml:2: scenario.arrivals counts with scenario.rate"},
        Case{kMuster + "scenario: {cooldown: 2s}\n",
             "b.yaml:2: scenario.cooldown is between the trials of a point, and scenario.trials is "
             "1"},
        Case{kMuster + "scenario: {clients: 2, rate: 5}\n",
             "b.yaml:2: scenario.clients and scenario.rate are two kinds of load"},
        Case{kMuster + "metrics: {carbon_intensity_g_per_kwh: 400}\n",
             "b.yaml:2: metrics.carbon_intensity_g_per_kwh wants metrics.carbon_intensity_source "
             "beside it: who says so"},
        Case{kMuster + "metrics: {enabled: false, output_dir: r}\n",
             "b.yaml:2: metrics.output_dir counts with metrics.enabled: true"},
        Case{kRemote + "metrics: {output_dir: r}\n",
             "b.yaml:2: metrics.output_dir wants backend.device_ids: the devices here to watch"},
        Case{kMuster + "reporter: {output_file: x.json}\n",
             "b.yaml:2: reporter.output_file must end in .csv: \"x.json\""},
        Case{
            kMuster + "scenario: {reasoning: true}\n",
            "b.yaml:2: scenario.reasoning must be false: it is of a server that runs already, with "
            "backend.type openai"},
        Case{kRemote + "scenario: {reasoning: true}\n",
             "b.yaml:2: scenario.reasoning wants the name that the server knows in "
             "scenario.reasoning_params: reasoning_effort or enable_thinking"},
        Case{kRemote + "scenario: {reasoning_params: {reasoning_effort: low}}\n",
             "b.yaml:2: scenario.reasoning_params.reasoning_effort counts with scenario.reasoning: "
             "true"},
        Case{kMuster + "scenario: {generate_kwargs: {do_sample: false, temperature: 0.5}}\n",
             "b.yaml:2: scenario.generate_kwargs.do_sample is false, and a temperature above 0 "
             "samples"},
        Case{kMuster + "scenario: {generate_kwargs: {top_p: 0.9}}\n",
             "b.yaml:2: scenario.generate_kwargs.top_p counts with do_sample: true or a "
             "temperature above 0"},
        Case{kMuster + "scenario: {generate_kwargs: {temperature: 0, top_p: 1, top_k: 40}}\n",
             "b.yaml:2: scenario.generate_kwargs.top_k counts with do_sample: true or a "
             "temperature above 0"},
        Case{kMuster + "scenario: {generate_kwargs: {max_new_tokens: 100, min_new_tokens: 50}}\n",
             "b.yaml:2: scenario.generate_kwargs.min_new_tokens must be 0 or as many as "
             "max_new_tokens, 100: muster serve knows an exact number, and no least one"},
        Case{kRemote + "scenario: {generate_kwargs: {max_new_tokens: [100, 8], min_new_tokens: "
                       "50}}\n",
             "b.yaml:2: scenario.generate_kwargs.min_new_tokens is above max_new_tokens: 50 and "
             "8"}));

TEST(SweepConfig, RefusesWhatMeansNothingForTheTask) {
  const auto kwargs = read(kMuster + "scenario: {generate_kwargs: {max_new_tokens: 5}}\n");
  EXPECT_TRUE(kwargs.check_task("generate"));
  EXPECT_EQ(kwargs.check_task("embed").error().message,
            "b.yaml:2: scenario.generate_kwargs.max_new_tokens means nothing for the task embed");
  const auto cut = read(kMuster + "scenario: {truncation: true}\n");
  EXPECT_TRUE(cut.check_task("embed"));
  EXPECT_EQ(cut.check_task("generate").error().message,
            "b.yaml:2: scenario.truncation must be false: the prompts of a decoder are never cut");
  EXPECT_TRUE(read(kMuster + "scenario: {truncation: false}\n").check_task("generate"));
  const auto rate = read(kMuster + "scenario: {rate: 5, input_shapes: {batch_size: 4}}\n");
  EXPECT_TRUE(rate.check_task("embed"));
  EXPECT_EQ(rate.check_task("generate").error().message,
            "b.yaml:2: scenario.input_shapes.batch_size is how many prompts are asked at once, and "
            "scenario.rate says when they come");
}

}  // namespace
}  // namespace muster
