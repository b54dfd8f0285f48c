#include "cli/fit_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "modelfile/model_catalogue.h"
#include "planner/forms/plan_json.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

ModelDescription known(std::string_view name) {
  return *describe_catalogued(*find_in_catalogue(name));
}

Plan plan_of(const ModelDescription& model, const Machine& machine) {
  PlanRequest request;
  if (model.shape.kind == ModelKind::Encoder) request.workload.task = PlanTask::Embed;
  return *make_plan(model, machine, request);
}

TEST(VerdictText, IsColouredOnATerminalOnly) {
  const FitVerdict verdict{Fit::No, "DOES NOT FIT: a needs 2 GB"};
  EXPECT_EQ(verdict_text(verdict, {.width = 80}), "DOES NOT FIT: a needs 2 GB\n");
  // Bold, and vermilion of xterm's palette.
  EXPECT_EQ(verdict_text(verdict, {.is_terminal = true, .width = 80, .has_color = true}),
            "\x1b[0;1;38;5;202mDOES NOT FIT\x1b[0m: a needs 2 GB\n");
}

TEST(VerdictText, BreaksBetweenWordsAlone) {
  const FitVerdict verdict{Fit::WithOffloading, "FITS ONLY WITH OFFLOADING: a needs 2 GB"};
  EXPECT_EQ(verdict_text(verdict, {.width = 30}), "FITS ONLY WITH OFFLOADING: a\n  needs 2 GB\n");
}

TEST(AssumptionText, NamesTaskTokensPrecisionAndDevice) {
  const auto machine = *parse_machine("sim:2xA10G-24G");
  const auto llama = known("llama-3-8b");
  EXPECT_EQ(assumption_text(llama, machine, plan_of(llama, machine), 120),
            "to generate: 1 sequence of 8,192 tokens, weights as stored (BF16), on A10G-24G\n");
  const auto minilm = known("all-MiniLM-L6-v2");
  EXPECT_EQ(assumption_text(minilm, machine, plan_of(minilm, machine), 120),
            "to embed: 1 sequence of 256 tokens, weights in fp32, on A10G-24G\n");
}

TEST(VerdictJson, FitsMeansWithoutOffloading) {
  const auto llama = known("llama-3-70b");
  const auto offloaded = *parse_machine("sim:2xA10G-24G,host=256GB");
  const auto json = verdict_json(llama, offloaded, plan_of(llama, offloaded));
  EXPECT_EQ(json["verdict"], "fits-with-offloading");
  EXPECT_EQ(json["fits"], false);
  const auto enough = *parse_machine("sim:8xH100-80G");
  EXPECT_EQ(verdict_json(llama, enough, plan_of(llama, enough))["fits"], true);
}

}  // namespace
}  // namespace muster
