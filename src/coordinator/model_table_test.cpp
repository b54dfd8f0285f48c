#include "coordinator/model_table.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ModelTable, SaysWhatAGroupIsReadyFor) {
  ModelTable table(2);
  EXPECT_TRUE(table.has_settled_models(0)) << "there is none to wait for";
  EXPECT_FALSE(table.has_ready_model(0));

  table.add(1, /*has_canary=*/true);
  auto& here = table.on(0)[1];
  EXPECT_FALSE(table.has_settled_models(0));
  here.status.state = ModelState::Loading;
  EXPECT_TRUE(table.is_loading(0));
  here.awaits_canary = true;
  EXPECT_FALSE(table.is_loading(0)) << "loaded, and not trusted yet";
  EXPECT_FALSE(table.has_settled_models(0));
  here.status.state = ModelState::Ready;
  EXPECT_TRUE(table.has_ready_model(0) && table.has_settled_models(0));
  EXPECT_TRUE(table.has_ready_canary(0));
  EXPECT_EQ(table.find(1, 1), nullptr) << "the other group is not to have it";

  here.is_leaving = true;
  EXPECT_FALSE(table.has_ready_model(0));
  EXPECT_TRUE(table.remove(1));
  EXPECT_FALSE(table.remove(1));
  EXPECT_FALSE(table.has_ready_canary(0)) << "nobody asks the canary of a model that is gone";
  EXPECT_NE(table.find(0, 1), nullptr) << "its memory is not given back yet";
}

TEST(ModelTable, AGroupHasFailedWhenNoneOfItsModelsIsThereOrComes) {
  ModelTable table(1);
  EXPECT_EQ(table.together(0), ModelsTogether::None);
  auto& first = table.on(0)[1];
  auto& second = table.on(0)[2];
  first.status.state = ModelState::Failed;
  EXPECT_EQ(table.together(0), ModelsTogether::Coming) << "the second is still to be loaded";
  second.status.state = ModelState::Ready;
  EXPECT_EQ(table.together(0), ModelsTogether::Ready) << "it works for the second";
  second.status.state = ModelState::Failed;
  EXPECT_EQ(table.together(0), ModelsTogether::Failed);
  first.is_leaving = true;
  EXPECT_EQ(table.together(0), ModelsTogether::Failed);
  second.is_leaving = true;
  EXPECT_EQ(table.together(0), ModelsTogether::None) << "nobody wants them there any more";
}

TEST(ModelTable, AGroupIsFullWhileNothingWorksAndSomethingWaitsForMemory) {
  ModelTable table(1);
  auto& first = table.on(0)[1];
  first.status.state = ModelState::Failed;
  EXPECT_FALSE(first.memory_at());
  first.memory.emplace();
  const TimePoint now{std::chrono::seconds(10)};
  first.memory->on_full(now);
  EXPECT_EQ(first.memory_at(), now + std::chrono::seconds(1));
  EXPECT_EQ(table.together(0), ModelsTogether::Full);
  EXPECT_TRUE(table.may_be_loaded(1));
  first.status.state = ModelState::Loading;
  EXPECT_FALSE(first.memory_at()) << "that is the next try";
  EXPECT_EQ(table.together(0), ModelsTogether::Full);
  first.status.state = ModelState::Ready;
  EXPECT_FALSE(first.takes_work()) << "its canary had no memory";
  EXPECT_TRUE(first.memory_at());

  auto& second = table.on(0)[2];
  second.status.state = ModelState::Ready;
  EXPECT_EQ(table.together(0), ModelsTogether::Ready) << "it works for the second";
  second.status.state = ModelState::Failed;
  first.is_leaving = true;
  EXPECT_FALSE(first.memory_at()) << "nobody wants it any more";
  EXPECT_EQ(table.together(0), ModelsTogether::Failed);
}

TEST(ModelTable, AModelMayBeLoadedWhileOneGroupHasNotFailed) {
  ModelTable table(2);
  table.add(1, false);
  EXPECT_FALSE(table.may_be_loaded(1)) << "no group is to have it";
  table.on(0)[1].status.state = ModelState::Failed;
  table.on(1)[1];
  EXPECT_TRUE(table.may_be_loaded(1));
  table.on(1)[1].status.state = ModelState::Failed;
  EXPECT_FALSE(table.may_be_loaded(1));
  EXPECT_FALSE(table.has_canary(1));
}

}  // namespace
}  // namespace muster
