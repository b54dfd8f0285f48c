// muster monitor on simulated devices: what it prints, records and measures, and what it refuses.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run_muster.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kTwoGpus = "sim:2xL4-24G";

class MonitorCommand : public testing::Test {
 protected:
  void expect_error(const Words& arguments, int exit_code, const std::string& sentence) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    const auto finished = muster_.run(arguments);
    EXPECT_EQ(finished.exit_code, exit_code);
    EXPECT_EQ(finished.err, "muster: " + sentence + "\n");
    EXPECT_EQ(finished.out, "");
  }

  Muster muster_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(MonitorCommand, BadInputIsOneSentence) {
  const Words head{"monitor", "--machine", kTwoGpus};
  const auto with = [&](Words more) {
    more.insert(more.begin(), head.begin(), head.end());
    return more;
  };
  expect_error(with({"--metrics", "power_instant_wats"}), 2,
               "--metrics: no reading has the name \"power_instant_wats\"; did you mean "
               "power_instant_watts?");
  expect_error(with({"--interval", "fast"}), 2,
               "--interval must be a time from 10ms to 60m, as 100ms, 0.5s or 2m: \"fast\"");
  expect_error(with({"--rotate-keep", "3"}), 2, "--rotate-keep needs --out FILE");
  expect_error(with({"--out", "a", "--rotate-keep", "3"}), 2,
               "--rotate-keep needs --rotate-size SIZE");
  expect_error(with({"--compat", "dcgm"}), 2, "--compat needs --listen ADDR:PORT");
  expect_error(with({"sleep", "1"}), 2,
               "to run a command, put -- before it: muster monitor -- sleep");
  expect_error(with({"--json"}), 2,
               "--json is for the report about a command: muster monitor --json -- CMD");
  EXPECT_FALSE(muster_.exists("a"));
}

TEST_F(MonitorCommand, TheExitCodeIsThatOfTheCommand) {
  EXPECT_EQ(muster_.run({"monitor", "--machine", kTwoGpus, "--", "sh", "-c", "exit 7"}).exit_code,
            7);
  EXPECT_EQ(
      muster_.run({"monitor", "--machine", kTwoGpus, "--", "sh", "-c", "kill -9 $$"}).exit_code,
      137);
  const auto missing = muster_.run({"monitor", "--machine", kTwoGpus, "--", "no-such-program"});
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_NE(missing.err.find("no-such-program"), std::string::npos);
  muster_.write("not-a-program", "#!/bin/sh\n");
  const auto forbidden = muster_.run({"monitor", "--machine", kTwoGpus, "--", "./not-a-program"});
  EXPECT_EQ(forbidden.exit_code, 126);
  EXPECT_NE(forbidden.err.find("not-a-program"), std::string::npos);
}

TEST_F(MonitorCommand, MeasuresACommandAndKeepsItsOutput) {
  const auto finished = muster_.run({"monitor", "--machine", kTwoGpus, "--json", "--", "sh", "-c",
                                     "echo its own words; sleep 2"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  std::istringstream lines(finished.out);
  std::string own;
  std::string report;
  std::getline(lines, own);
  std::getline(lines, report);
  EXPECT_EQ(own, "its own words");
  const auto json = Json::parse(report);
  EXPECT_GE(json["wall_seconds"], 2);
  ASSERT_EQ(json["devices"].size(), 2U);
  for (const auto& device : json["devices"]) {
    EXPECT_GE(device["utilization_ratio"]["samples"], 1);
    EXPECT_EQ(device["energy"]["method"], "counter") << device["energy"];
    EXPECT_GT(device["energy"]["joules"], 0);
  }
  // A shell that sleeps: some memory, and less time of a core than went by.
  const auto& used = json["command"];
  EXPECT_GT(used["peak_memory_bytes"], 100'000);
  EXPECT_LT(used["user_seconds"].get<double>() + used["system_seconds"].get<double>(),
            json["wall_seconds"].get<double>());
  EXPECT_TRUE(used["read_bytes"].is_number_unsigned());
  EXPECT_TRUE(used["written_bytes"].is_number_unsigned());
  for (const auto* name :
       {"total_avg_utilization", "total_max_utilization", "total_avg_memory_mb",
        "total_max_memory_mb", "total_avg_power_w", "total_max_power_w", "total_samples",
        "avg_utilization_per_gpu", "avg_memory_per_gpu_mb", "any_gpu_active"}) {
    EXPECT_TRUE(json["totals"].contains(name)) << name;
  }
}

TEST_F(MonitorCommand, RecordsWhatWasAskedForWhileACommandRuns) {
  const auto finished =
      muster_.run({"monitor", "--machine", kTwoGpus, "--out", "stats.jsonl", "--interval", "100ms",
                   "--metrics", "energy_joules", "--", "sleep", "2"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  std::istringstream lines(muster_.read("stats.jsonl"));
  double last = 0;
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = Json::parse(line);
    EXPECT_GT(json["time"], last);
    last = json["time"];
    ASSERT_EQ(json["devices"].size(), 2U);
    EXPECT_LE(json["devices"][0]["readings"].size(), 1U);
  }
  EXPECT_GE(count, 3);
}

TEST_F(MonitorCommand, ChargesACommandWithWhatItDidItself) {
  const auto time_of = [&](const char* script) {
    const auto finished =
        muster_.run({"monitor", "--machine", kTwoGpus, "--json", "--", "sh", "-c", script});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return Json::parse(finished.out)["command"]["user_seconds"].get<double>();
  };
  // A child of the command counts as the command.
  EXPECT_GT(time_of("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; :"),
            time_of("sleep 0.3"));
  const auto shown = muster_.run({"monitor", "--machine", kTwoGpus, "--", "sleep", "0.1"});
  EXPECT_NE(shown.err.find(" s; the command itself: CPU 0.0"), std::string::npos) << shown.err;
}

TEST_F(MonitorCommand, TellsWhatACpuDidDuringAShortCommand) {
  // A CPU is visited once a second, and this is over before that.
  const auto finished =
      muster_.run({"monitor", "--json", "--", "sh", "-c",
                   "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; sleep 0.1"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  double busiest = 0;
  const auto json = Json::parse(finished.out);
  for (const auto& device : json["devices"]) {
    if (!device["name"].get<std::string>().starts_with("cpu:")) continue;
    ASSERT_TRUE(device["utilization_ratio"].is_object()) << device;
    busiest = std::max(busiest, device["utilization_ratio"]["max"].get<double>());
    EXPECT_GT(device["peak_memory_bytes"], 0);
  }
  EXPECT_GT(busiest, 0);
  EXPECT_LE(busiest, 1);
}

TEST_F(MonitorCommand, SaysWhyACpuHasNoEnergy) {
  muster_.set("MUSTER_SYSFS_ROOT", ".");  // without /sys, so without counters
  const auto finished = muster_.run({"monitor", "--", "sleep", "0.1"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_NE(finished.err.find("cpu:0: no energy: there is no energy counter that can be read, and "
                              "there are no two power readings\n"),
            std::string::npos)
      << finished.err;
}

TEST_F(MonitorCommand, RecordsCsvWhereTheNameSaysSo) {
  const Words words{"monitor", "--machine", kTwoGpus,        "--out", "stats.csv", "--interval",
                    "100ms",   "--metrics", "energy_joules", "--",    "sleep",     "0.3"};
  ASSERT_EQ(muster_.run(words).exit_code, 0);
  ASSERT_EQ(muster_.run(words).exit_code, 0);
  std::istringstream lines(muster_.read("stats.csv"));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "time,device,energy_joules");
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 2) << line;
    EXPECT_NE(line.find(count % 2 == 0 ? ",cuda:0," : ",cuda:1,"), std::string::npos) << line;
  }
  EXPECT_GE(count, 4);
  auto others = words;
  others[8] = "energy_joules,power_instant_watts";
  const auto refused = muster_.run(others);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err,
            "muster: stats.csv is there and holds no CSV with these columns to go on with; another "
            "name is needed\n");
}

TEST_F(MonitorCommand, GoesOnWithARecordingAndLeavesOtherJsonAlone) {
  const Words words{"monitor", "--machine", kTwoGpus, "--out", "u.jsonl", "--", "true"};
  for (const std::string own : {"{\"text\": \"my own\"}\n{\"text\": \"lines\"}\n",
                                "{\"time\": 1, \"machine\": \"here\"}\n", "{\"text\": \"torn"}) {
    muster_.write("u.jsonl", own);
    const auto refused = muster_.run(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.err,
              "muster: u.jsonl is there and holds no recording to go on with; another name is "
              "needed\n");
    EXPECT_EQ(muster_.read("u.jsonl"), own);
  }
  muster_.write("u.jsonl", "");
  ASSERT_EQ(muster_.run(words).exit_code, 0);
  const auto once = muster_.read("u.jsonl");
  ASSERT_EQ(muster_.run(words).exit_code, 0);
  const auto twice = muster_.read("u.jsonl");
  EXPECT_TRUE(twice.starts_with(once) && twice.size() > once.size()) << twice;
}

TEST_F(MonitorCommand, EndsWellWhenItIsAskedTo) {
  const auto pid = muster_.start({"monitor", "--machine", kTwoGpus, "--", "sleep", "100"});
  // The signal is remembered, or passed on to the command: either way it is over.
  ::kill(pid, SIGTERM);
  const auto finished = muster_.wait(pid);
  EXPECT_EQ(finished.exit_code, 128 + SIGTERM);
}

}  // namespace
}  // namespace muster
