#include "cli/pull_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

PullPlan plan() {
  PullPlan plan{.options = {.model = "org/tiny"},
                .commit = std::string(40, 'a'),
                .snapshot = "/hub/models--org--tiny/snapshots/a",
                .files = {}};
  plan.files.push_back(
      {.file = {.path = "config.json", .size = 612}, .is_here = true, .bytes_here = 612});
  plan.files.push_back({.file = {.path = "vocab.txt", .size = 1000}});
  plan.files.push_back(
      {.file = {.path = "model.safetensors", .size = 9'000'000}, .bytes_here = 4'000'000});
  return plan;
}

TEST(PullView, APlanSaysWhatIsHereAndWhatIsNot) {
  EXPECT_EQ(describe_pull_plan(plan(), {.width = 120}),
            "file                  size  state\n"
            "config.json          612 B  here\n"
            "vocab.txt          1.00 kB  to fetch\n"
            "model.safetensors  9.00 MB  4.00 MB here\n"
            "\n"
            "org/tiny at " +
                std::string(40, 'a') +
                ": 3 files, 9.00 MB in all, 5.00 MB to fetch\n"
                "/hub/models--org--tiny/snapshots/a\n");
}

TEST(PullView, ProgramsGetWhatCameOverTheNetwork) {
  const std::uint64_t received = 5'001'000;
  const auto json = nlohmann::json::parse(pull_json(plan(), &received));
  EXPECT_EQ(json["bytes"], 9'001'612);
  EXPECT_EQ(json["bytes_received"], 5'001'000);
  EXPECT_EQ(json["files"][2]["bytes_here_before"], 4'000'000);
  EXPECT_TRUE(nlohmann::json::parse(pull_json(plan(), nullptr))["bytes_received"].is_null());
}

TEST(PullView, TheBarNamesTheFileThatGrows) {
  const auto reading = pull_reading({.bytes_done = 4'500'806,
                                     .bytes_all = 9'001'612,
                                     .files_done = 2,
                                     .files_all = 3,
                                     .file = "model.safetensors"});
  EXPECT_EQ(reading.fraction, 0.5);
  EXPECT_EQ(reading.counts.front().count, 4U);
  EXPECT_EQ(reading.remarks.front(), "file 3 of 3");
  // At the end there is no fourth.
  EXPECT_EQ(pull_reading({.bytes_done = 1, .bytes_all = 1, .files_done = 3, .files_all = 3})
                .remarks.front(),
            "file 3 of 3");
}

}  // namespace
}  // namespace muster
