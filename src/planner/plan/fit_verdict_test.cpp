#include "planner/plan/fit_verdict.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "planner/memory/memory_fixture.h"
#include "planner/plan/plan.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

// Llama 3's dimensions: 8 and 70 billion parameters. Source: arXiv 2407.21783, table 3.
ModelDescription llama_8b() {
  auto model = llama({.layers = 32,
                      .hidden = 4096,
                      .heads = 32,
                      .kv_heads = 8,
                      .head_size = 128,
                      .wide = 14336,
                      .vocab = 128'256});
  model.name = "llama-3-8b";
  return model;
}

ModelDescription llama_70b() {
  auto model = llama({.layers = 80,
                      .hidden = 8192,
                      .heads = 64,
                      .kv_heads = 8,
                      .head_size = 128,
                      .wide = 28672,
                      .vocab = 128'256});
  model.name = "llama-3-70b";
  return model;
}

Plan plan_of(const ModelDescription& model, const std::string& machine, PlanRequest request = {}) {
  request.workload.context = 8192;
  const auto plan = make_plan(model, *parse_machine(machine), request);
  EXPECT_TRUE(plan) << plan.error().message;
  return *plan;
}

bool contains(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

TEST(FitVerdict, AModelThatOneDeviceHoldsFits) {
  const auto plan = plan_of(llama_8b(), "sim:1xA10G-24G");
  EXPECT_EQ(plan.verdict.fit, Fit::OnDevices);
  const auto& stage = plan.copies.front().stages.front();
  EXPECT_EQ(plan.verdict.sentence, "FITS: " + human_bytes(stage.memory.total()) + " of " +
                                       human_bytes(stage.budget_bytes) + " usable on cuda:0");
}

TEST(FitVerdict, OfSeveralCopiesEachDeviceIsMeant) {
  const auto plan = plan_of(llama_8b(), "sim:2xA10G-24G");
  ASSERT_EQ(plan.copies.size(), 2U);
  EXPECT_TRUE(plan.verdict.sentence.ends_with(" usable on each of 2 devices"))
      << plan.verdict.sentence;
}

TEST(FitVerdict, OfUnevenStagesTheFullestDeviceIsMeant) {
  PlanRequest request;
  request.pipeline_parallel = 2;
  request.stage_layers = {8, 24};
  const auto plan = plan_of(llama_8b(), "sim:2xA10G-24G", request);
  const auto& fullest = plan.copies.front().stages.back();
  EXPECT_EQ(plan.verdict.sentence, "FITS: " + human_bytes(fullest.memory.total()) + " of " +
                                       human_bytes(fullest.budget_bytes) +
                                       " usable on the fullest of 2 devices");
}

TEST(FitVerdict, LayersInHostMemoryAreAVerdictOfTheirOwn) {
  const auto plan = plan_of(llama_70b(), "sim:2xA10G-24G,host=256GB");
  EXPECT_EQ(plan.verdict.fit, Fit::WithOffloading);
  EXPECT_EQ(fit_name(plan.verdict.fit), "fits-with-offloading");
  EXPECT_TRUE(plan.verdict.sentence.starts_with("FITS ONLY WITH OFFLOADING: llama-3-70b needs "))
      << plan.verdict.sentence;
  EXPECT_TRUE(plan.verdict.sentence.ends_with(" of weights lie in host memory"))
      << plan.verdict.sentence;
}

TEST(FitVerdict, LayersOnDiskDoNotFit) {
  const auto plan = plan_of(llama_70b(), "sim:1xA10G-24G,host=64GB");
  ASSERT_TRUE(plan.is_placed()) << "the placement with its disk is still shown";
  EXPECT_EQ(plan.verdict.fit, Fit::No);
  EXPECT_TRUE(plan.verdict.sentence.starts_with("DOES NOT FIT: llama-3-70b needs "))
      << plan.verdict.sentence;
  EXPECT_TRUE(contains(plan.verdict.sentence, "the device of sim:1xA10G-24G,host=64GB has 22.9 GB"))
      << plan.verdict.sentence;
  EXPECT_TRUE(plan.verdict.sentence.ends_with(" GB on disk")) << plan.verdict.sentence;
}

TEST(FitVerdict, WithoutAPlacementItSaysWhatIsMissing) {
  PlanRequest request;
  request.may_offload = false;
  const auto plan = plan_of(llama_70b(), "sim:2xA10G-24G", request);
  EXPECT_FALSE(plan.is_placed());
  EXPECT_EQ(plan.verdict.fit, Fit::No);
  ASSERT_FALSE(plan.missing.empty());
  EXPECT_TRUE(plan.verdict.sentence.ends_with("; it would take " + plan.missing.front()))
      << plan.verdict.sentence;
}

TEST(NextBetterPlan, OfAnOffloadedPlanNeedsTheNearerPlacesOnly) {
  const auto on_disk = plan_of(llama_70b(), "sim:1xA10G-24G,host=64GB");
  ASSERT_TRUE(on_disk.next);
  EXPECT_TRUE(on_disk.next->what.starts_with("nothing on disk, ")) << on_disk.next->what;
  const auto on_host = plan_of(llama_70b(), "sim:2xA10G-24G,host=256GB");
  ASSERT_TRUE(on_host.next);
  EXPECT_TRUE(on_host.next->what.starts_with("all on the devices, ")) << on_host.next->what;
}

TEST(NextBetterPlan, IsNeverOfTheCopiesAndCutsThatAreShown) {
  for (const auto* machine : {"sim:2xH100-80G", "sim:3xA100-80G", "sim:8xA10G-24G"}) {
    const auto plan = plan_of(llama_70b(), machine);
    ASSERT_EQ(plan.verdict.fit, Fit::OnDevices) << machine;
    ASSERT_TRUE(plan.next) << machine;
    const auto shown = "one copy cut into " + std::to_string(plan.pipeline_parallel) + " stages";
    EXPECT_FALSE(plan.tensor_parallel == 1 && plan.copies.size() == 1 &&
                 (plan.next->what == shown || plan.next->what.starts_with(shown + ",")))
        << machine << ": " << plan.next->what;
  }
}

// With a little more memory four stages in another order are 2 % quicker: to the reader that is the
// plan that is shown. Three stages are another one.
TEST(NextBetterPlan, IsNeverOfTheStagesThatAreShown) {
  PlanRequest request;
  request.margin = PlanMargin{.share = 0.04, .bytes = 0};
  const auto plan = plan_of(llama_70b(), "sim:1xA100-80G+4xA10G-24G", request);
  ASSERT_EQ(plan.verdict.fit, Fit::OnDevices);
  ASSERT_EQ(plan.tensor_parallel, 1U);
  ASSERT_EQ(plan.pipeline_parallel, 4U);
  ASSERT_EQ(plan.copies.size(), 1U);
  ASSERT_TRUE(plan.next);
  EXPECT_TRUE(plan.next->what.starts_with("one copy cut into 3 stages")) << plan.next->what;
}

TEST(AutoPlan, ASingleCopyThatIsAskedForMayBeOffloaded) {
  PlanRequest request;
  request.data_parallel = 1;
  request.tensor_parallel = 1;
  const auto plan = plan_of(llama_70b(), "sim:2xA10G-24G,host=256GB", request);
  EXPECT_EQ(plan.verdict.fit, Fit::WithOffloading);
}

TEST(WholeCopyMemory, IsWhatThePlanOfAWholeCopyTakes) {
  auto model = llama_8b();
  model.text_length = 256;  // what a workload without a context means
  const auto machine = *parse_machine("sim:1xA10G-24G");
  const auto memory = *whole_copy_memory(model, machine, {});
  const auto plan = *make_plan(model, machine, {});
  EXPECT_EQ(plan.workload.context, 256U);
  EXPECT_EQ(memory.total(), plan.copies.front().stages.front().memory.total());
  EXPECT_EQ(usual_context(model), 256U);
  model.text_length = 0;
  EXPECT_EQ(usual_context(model), model.shape.length_max);
}

}  // namespace
}  // namespace muster
