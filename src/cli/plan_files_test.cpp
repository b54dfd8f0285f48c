#include "planner/forms/plan_files.h"

#include <gtest/gtest.h>

#include <string>

#include "modelfile/model_description.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

// Eight layers of 32 heads, small enough for a text: 0.5 MB of weights a layer.
constexpr std::string_view kConfig = R"({"model_type": "llama", "hidden_size": 256,
  "intermediate_size": 512, "num_hidden_layers": 8, "num_attention_heads": 32,
  "num_key_value_heads": 8, "vocab_size": 1000, "max_position_embeddings": 128,
  "tie_word_embeddings": false})";

class PlanFilesTest : public testing::Test {
 protected:
  PlanFilesTest() {
    model_ = *describe_config(kConfig);
    model_.name = "tiny";
    machine_ = *parse_machine("sim:2xA10G-24G");
  }

  Plan planned(const PlanRequest& request) const {
    auto plan = make_plan(model_, machine_, request);
    EXPECT_TRUE(plan) << plan.error().message;
    return *std::move(plan);
  }

  Plan read_back(const std::string& text) const {
    const auto file = parse_plan_file("plan", text, model_, machine_);
    EXPECT_TRUE(file) << file.error().message;
    PlanRequest request;
    EXPECT_TRUE(apply_plan_file(*file, request));
    return planned(request);
  }

  static void expect_same_cuts(const Plan& a, const Plan& b) {
    ASSERT_EQ(a.copies.size(), b.copies.size());
    for (std::size_t i = 0; i < a.copies.size(); ++i) {
      ASSERT_EQ(a.copies[i].stages.size(), b.copies[i].stages.size());
      for (std::size_t j = 0; j < a.copies[i].stages.size(); ++j) {
        const auto& left = a.copies[i].stages[j];
        const auto& right = b.copies[i].stages[j];
        EXPECT_EQ(left.devices, right.devices);
        EXPECT_EQ(left.first_unit, right.first_unit);
        EXPECT_EQ(left.last_unit, right.last_unit);
      }
    }
  }

  ModelDescription model_;
  Machine machine_;
};

TEST_F(PlanFilesTest, EveryFormOfACutCopyReadsBackAsTheSameCuts) {
  PlanRequest request;
  request.strategy = PlanStrategy::Balanced;
  const auto plan = planned(request);
  ASSERT_EQ(plan.copies.front().stages.size(), 2U);
  for (const auto format : {PlanFormat::Yaml, PlanFormat::HfDeviceMap, PlanFormat::TensorSplit}) {
    const auto text = plan_in_format(format, model_, machine_, plan);
    ASSERT_TRUE(text) << text.error().message;
    expect_same_cuts(plan, read_back(*text));
  }
}

TEST_F(PlanFilesTest, VllmsFlagsKeepTheLayersOfEveryStage) {
  PlanRequest request;
  request.stage_layers = {3, 5};
  const auto plan = planned(request);
  const auto text = plan_in_format(PlanFormat::Vllm, model_, machine_, plan);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text,
            "VLLM_PP_LAYER_PARTITION=3,5 --tensor-parallel-size 1 --pipeline-parallel-size 2 "
            "--data-parallel-size 1\n");
  expect_same_cuts(plan, read_back(*text));
}

TEST_F(PlanFilesTest, CopiesAndTensorParallelismReadBackAsYaml) {
  const auto copies = planned({});
  ASSERT_EQ(copies.copies.size(), 2U);
  expect_same_cuts(copies, read_back(*plan_in_format(PlanFormat::Yaml, model_, machine_, copies)));
  PlanRequest request;
  request.tensor_parallel = 2;
  const auto shared = planned(request);
  expect_same_cuts(shared, read_back(*plan_in_format(PlanFormat::Yaml, model_, machine_, shared)));
}

TEST_F(PlanFilesTest, AFormSaysWhatItCannotSay) {
  const auto copies = planned({});
  const auto map = plan_in_format(PlanFormat::HfDeviceMap, model_, machine_, copies);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().kind, ErrorKind::Unsupported);
  const auto split = plan_in_format(PlanFormat::TensorSplit, model_, machine_, copies);
  ASSERT_FALSE(split);
  EXPECT_EQ(split.error().kind, ErrorKind::Unsupported);
}

// llama.cpp gives layer i of 9 (8 and the output) to the first device whose cumulated share exceeds
// i / 9: 0.75 is more than 0/9 to 6/9, and not more than 7/9.
TEST_F(PlanFilesTest, ATensorSplitMeansWhatLlamaCppMakesOfIt) {
  const auto plan = read_back("3,1");
  ASSERT_EQ(plan.copies.front().stages.size(), 2U);
  EXPECT_EQ(layer_partition(model_, plan), (std::vector<std::uint32_t>{7, 1}));
}

TEST_F(PlanFilesTest, OnlyWholeCopiesThatEmbedHereCanBeCarriedOut) {
  PlanFile plan;
  plan.model = "tiny";
  plan.machine = "here";
  plan.task = "embed";
  plan.devices = {"cuda:0", "cuda:2"};
  plan.is_replicated = true;
  EXPECT_EQ(*devices_to_embed("p.yaml", plan, "tiny"), "cuda:0,cuda:2");
  plan.machine = "2xcpu";
  EXPECT_EQ(*devices_to_embed("p.yaml", plan, "tiny"), "2xcpu");
  EXPECT_EQ(devices_to_embed("p.yaml", plan, "other").error().kind, ErrorKind::InvalidArgument);
  plan.machine = "sim:8xH100-80G";
  EXPECT_EQ(devices_to_embed("p.yaml", plan, "tiny").error().kind, ErrorKind::Unsupported);
  plan.machine = "here";
  plan.task = "generate";
  EXPECT_EQ(devices_to_embed("p.yaml", plan, "tiny").error().kind, ErrorKind::Unsupported);
}

TEST_F(PlanFilesTest, WhatIsNoPlanIsCorrupt) {
  for (const std::string text :
       {"muster_plan: [1", "muster_plan: 1\nmodel: x\n", "{\"a\": ", "hello"}) {
    const auto file = parse_plan_file("p", text, model_, machine_);
    ASSERT_FALSE(file) << text;
    EXPECT_EQ(file.error().kind, ErrorKind::Corrupt) << file.error().message;
  }
}

}  // namespace
}  // namespace muster
