// `muster top` and `muster devices` without a terminal: what they print, and what they refuse.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

class TopCommand : public ::testing::Test {
 protected:
  void expect_error(const Words& words, int code, const std::string& message) {
    const auto finished = muster_.run(words);
    EXPECT_EQ(finished.exit_code, code) << finished.err;
    EXPECT_EQ(finished.err, "muster: " + message + "\n");
    EXPECT_EQ(finished.out, "");
  }

  Muster muster_{"top_command"};
};

TEST_F(TopCommand, PrintsAFrameWithoutATerminal) {
  const auto finished =
      muster_.run({"top", "--once", "--machine", "sim:2xH100-80G", "--interval", "10ms"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out.find("muster top  sim:2xH100-80G  2 GPUs"), 0U) << finished.out;
  EXPECT_NE(finished.out.find("\ncuda:1 "), std::string::npos);
  EXPECT_EQ(finished.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(finished.out.find("q quit"), std::string::npos);
}

TEST_F(TopCommand, SaysThatItNeedsATerminal) {
  expect_error({"top", "--machine", "sim:2xH100-80G"}, 2,
               "muster top needs a terminal: `muster top --once` prints a frame without one");
  expect_error({"devices", "--watch"}, 2,
               "--watch needs a terminal that can move its cursor: without it the devices are "
               "printed once");
}

TEST_F(TopCommand, RefusesWhatHasNoMeaning) {
  expect_error({"top", "--once", "--interval", "1h"}, 2,
               "--interval must be a time from 10ms to 60m, as 100ms, 0.5s or 2m: \"1h\"");
  expect_error({"top", "--once", "--replay", "x.jsonl", "--machine", "sim:2xL4"}, 2,
               "--replay shows what was recorded: --machine has no meaning with it");
  expect_error({"devices", "--watch", "--json"}, 2,
               "--watch draws on a terminal and --json does not: `muster monitor` writes a JSON "
               "line each interval");
  expect_error({"devices", "--interval", "2s"}, 2,
               "--interval says how often --watch draws: add --watch");
}

TEST_F(TopCommand, NamesTheRecordingThatCannotBeShown) {
  EXPECT_EQ(muster_.run({"top", "--once", "--replay", "none.jsonl"}).exit_code, 3);
  muster_.write("broken.jsonl", "{\"devices\": 1}\n");
  const auto broken = muster_.run({"top", "--once", "--replay", "broken.jsonl"});
  EXPECT_EQ(broken.exit_code, 7);
  EXPECT_EQ(broken.err.find("muster: broken.jsonl:1: "), 0U) << broken.err;
}

TEST_F(TopCommand, ListsTheDevicesOfAMachineThatIsThoughtOf) {
  const auto finished = muster_.run({"devices", "--json", "--machine", "sim:2xH100-80G"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["machine"], "sim:2xH100-80G");
  ASSERT_EQ(json["gpus"].size(), 2U);
  EXPECT_EQ(json["gpus"][1]["name"], "cuda:1");
  EXPECT_EQ(json["gpus"][1]["state"], "up");
  EXPECT_EQ(json["gpus"][1]["cuda_ordinal"], 1);
  EXPECT_TRUE(json["gpus"][1]["parent"].is_null());
  EXPECT_EQ(json["gpus"][0]["links"]["cuda:1"], "NV18");
  EXPECT_TRUE(json["slices"].empty());
  EXPECT_TRUE(json["cpu_model"].is_null());
}

TEST_F(TopCommand, ShowsTheTopologyOfAMachineThatIsThoughtOf) {
  const auto finished = muster_.run({"devices", "--topology", "--machine", "sim:2xH100-80G"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("\ncuda:0  X       NV18 "), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("\nNV#  so many NVLinks\n"), std::string::npos);
}

}  // namespace
}  // namespace muster
