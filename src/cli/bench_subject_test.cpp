#include "cli/bench_subject.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(FittingModel, IsTheFirstForTheTask) {
  const std::string mixed =
      R"({"data":[{"id":"tiny","task":"embed"},{"id":"ranker","task":"rerank"},)"
      R"({"id":"chat","task":"generate"},{"id":"chat2","task":"generate"}]})";
  EXPECT_EQ(*fitting_model(mixed, BenchTask::Embed), "tiny");
  EXPECT_EQ(*fitting_model(mixed, BenchTask::Rerank), "ranker");
  EXPECT_EQ(*fitting_model(mixed, BenchTask::Generate), "chat");
}

TEST(FittingModel, IsTheFirstOfAServerThatSaysNoTask) {
  EXPECT_EQ(*fitting_model(R"({"data":[{"id":"a"},{"id":"b"}]})", BenchTask::Rerank), "a");
  for (const char* body : {R"({"data":[]})", R"({"data":3})", "nonsense", ""}) {
    EXPECT_EQ(*fitting_model(body, BenchTask::Embed), "") << body;
  }
}

TEST(FittingModel, MayBeOneOfWhichAnotherServerSaysATaskInItsWords) {
  const std::string body =
      R"({"data":[{"id":"tiny","task":"embed"},{"id":"chat","task":"text-generation"}]})";
  EXPECT_EQ(*fitting_model(body, BenchTask::Generate), "chat");
  EXPECT_EQ(*fitting_model(body, BenchTask::Embed), "tiny");
}

TEST(FittingModel, RefusesAServerWithoutOne) {
  const auto refused =
      fitting_model(R"({"data":[{"id":"tiny","task":"embed"},{"id":"ranker","task":"rerank"}]})",
                    BenchTask::Generate);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(refused.error().message,
            "the server has no model for muster bench generate: it serves tiny (embed), ranker "
            "(rerank)");
}

}  // namespace
}  // namespace muster
