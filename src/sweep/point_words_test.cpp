#include "sweep/point_words.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text, const std::string& task, std::uint64_t texts = 0) {
  const auto config = SweepConfig::read(text, "b.yaml", {});
  EXPECT_TRUE(config) << config.error().message;
  const auto points = sweep_points(
      *config, {.task = task, .texts_hash = texts > 0 ? "h" : "", .text_count = texts});
  EXPECT_TRUE(points) << points.error().message;
  return point_words(points->front(), task);
}

TEST(PointWords, AreTheCommandThatMeasuresAPoint) {
  EXPECT_EQ(words_of("backend: {model: m, device: cpu, device_ids: [0, 1], torch_dtype: bfloat16}\n"
                     "scenario: {dataset_name: a.csv, text_column_name: body, truncation: false,\n"
                     "  input_shapes: {batch_size: 8}, clients: 2, trials: 3, cooldown: 2s,\n"
                     "  warm_up: none, timeout: 9s, seed: 7, slo: latency_p50<1s}\n",
                     "embed", 20),
            (Words{"bench", "embed", "m", "--devices=cpu:0,cpu:1", "--precision=bf16",
                   "--no-auto-truncate", "--requests=3", "--batch=8", "--input=a.csv",
                   "--field=body", "--clients=2", "--trials=3", "--cooldown=2s", "--warm-up=none",
                   "--timeout=9s", "--seed=7", "--slo=latency_p50<1s"}));
}

TEST(PointWords, AskSoManyPromptsAtOnce) {
  EXPECT_EQ(
      words_of("backend: {model: f.gguf, device_ids: 2xcpu}\n"
               "scenario: {num_samples: 12, input_shapes: {batch_size: 4},\n"
               "  generate_kwargs: {max_new_tokens: 9, min_new_tokens: 9, repetition_penalty: "
               "1.1}}\n",
               "generate"),
      (Words{"bench", "generate", "f.gguf", "--devices=2xcpu", "--precision=auto", "--requests=12",
             "--clients=4", "--output-tokens=9", "--trials=1", "--warm-up=auto", "--seed=1",
             "--ignore-eos", R"(--extra-body={"repetition_penalty":1.1})"}));
}

TEST(PointWords, MeasureServersOfOthers) {
  EXPECT_EQ(
      words_of("backend: {type: vllm, endpoint: \"http://h:1/v1\", model: m, api_key_file: k}\n"
               "scenario: {num_samples: 5, rate: 10..20, arrivals: constant, reasoning: true,\n"
               "  reasoning_params: {reasoning_effort: low, enable_thinking: true},\n"
               "  generate_kwargs: {max_new_tokens: 9, min_new_tokens: 3, do_sample: true}}\n",
               "generate"),
      (Words{"bench", "generate", "http://h:1/v1", "--model=m", "--requests=5", "--api-key-file=k",
             "--output-tokens=9", "--rate=10..20", "--arrivals=constant", "--trials=1",
             "--warm-up=auto", "--seed=1",
             R"(--extra-body={"temperature":1,"seed":1,"min_tokens":3,"reasoning_effort":"low",)"
             R"("chat_template_kwargs":{"enable_thinking":true}})"}));
}

TEST(PointWords, AskForCompletions) {
  const auto words = words_of("backend: {url: \"http://h:1\"}\n", "completions");
  EXPECT_EQ(words[1], "generate");
  EXPECT_EQ(words[3], "--completions");
}

TEST(KeyOfFlag, LeadsBackToTheFile) {
  EXPECT_EQ(key_of_flag("--rate"), SweepKey::Rate);
  EXPECT_EQ(key_of_flag("--devices"), SweepKey::DeviceIds);
  EXPECT_FALSE(key_of_flag("--nothing"));
}

}  // namespace
}  // namespace muster
