// Every model of the catalogue can be planned and estimated.
#include <gtest/gtest.h>

#include "modelfile/model_catalogue.h"
#include "planner/plan/plan.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

TEST(CataloguePlan, ThePlannerReadsEveryModel) {
  const auto machine = *parse_machine("sim:8xH100-80G");
  for (const auto& known : model_catalogue()) {
    const auto model = describe_catalogued(known);
    ASSERT_TRUE(model) << known.id << ": " << model.error().message;
    PlanRequest request;
    if (model->shape.kind == ModelKind::Encoder) request.workload.task = PlanTask::Embed;
    const auto plan = make_plan(*model, machine, request);
    ASSERT_TRUE(plan) << known.id << ": " << plan.error().message;
    EXPECT_TRUE(plan->is_placed()) << known.id;
    const auto memory = whole_copy_memory(*model, machine, request);
    ASSERT_TRUE(memory) << known.id << ": " << memory.error().message;
    EXPECT_GT(memory->weights, known.parameters) << known.id << ": at least 2 bytes each";
  }
}

}  // namespace
}  // namespace muster
