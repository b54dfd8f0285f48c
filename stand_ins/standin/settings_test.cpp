#include "standin/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace muster::standin {
namespace {

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    ::unsetenv("STANDIN");
    ::unsetenv("STANDIN_VISIBLE_DEVICES");
    std::filesystem::remove(state_file());
    std::filesystem::remove(state_file() + ".lost");
  }
  static std::string state_file() { return testing::TempDir() + "standin_settings_test"; }

  static std::string error_of(const char* text) {
    ::setenv("STANDIN", text, 1);
    const auto settings = read_settings();
    return settings ? "" : settings.error().message;
  }
};

TEST_F(SettingsTest, WithoutVariablesThereAreTwoDevicesWithNothingWrong) {
  const auto devices = read_settings();
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ((*devices)[1].name, "standin:1");
  EXPECT_EQ((*devices)[1].memory_bytes, 1U << 30);
  EXPECT_EQ((*devices)[1].fail_at_kernel, 0U);
}

TEST_F(SettingsTest, VisibleDevicesKeepTheirNames) {
  ::setenv("STANDIN_VISIBLE_DEVICES", "3", 1);
  ::setenv("STANDIN", R"({"all": {"late_us": 7, "slow_factor": 2}, "standin:3": {"slow_factor": 4},
                          "standin:0": {"memory_bytes": 5}})",
           1);
  const auto devices = read_settings();
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 1U);
  const auto& device = devices->front();
  EXPECT_EQ(device.name, "standin:3");
  EXPECT_EQ(device.late_us, 7U);
  EXPECT_EQ(device.slow_factor, 4);
  EXPECT_EQ(device.memory_bytes, 1U << 30);
}

TEST_F(SettingsTest, WordsThatAreNoneAreRefusedByName) {
  EXPECT_EQ(error_of("[]"), "STANDIN: it is no JSON object");
  EXPECT_EQ(error_of(R"({"cuda:0": {}})"), "STANDIN: no such device: cuda:0");
  EXPECT_EQ(error_of(R"({"standin:8": {}})"), "STANDIN: no such device: standin:8");
  EXPECT_EQ(error_of(R"({"standin:01": {}})"), "STANDIN: no such device: standin:01");
  EXPECT_EQ(error_of(R"({"standin:7": {"fail_at": 1}})"), "STANDIN: no such word: fail_at");
  EXPECT_EQ(error_of(R"({"all": {"late_us": "soon"}})"), R"(STANDIN: late_us cannot be "soon")");
  EXPECT_EQ(error_of(R"({"all": {"late_us": -1}})"), "STANDIN: late_us cannot be -1");
  EXPECT_EQ(error_of(R"({"all": {"fail_at_kernel": 0.5}})"),
            "STANDIN: fail_at_kernel cannot be 0.5");
  EXPECT_EQ(error_of(R"({"all": {"in_lanes": 4294967296}})"),
            "STANDIN: in_lanes cannot be 4294967296");
  EXPECT_EQ(error_of(R"({"all": {"full_count": 1e9, "slow_factor": 1.5}})"), "");
  EXPECT_EQ(error_of(R"({"all": {"error": "tired"}})"), R"(STANDIN: no such error: "tired")");
  ::unsetenv("STANDIN");
  ::setenv("STANDIN_VISIBLE_DEVICES", "GPU-1", 1);
  EXPECT_EQ(read_settings().error().message, "STANDIN_VISIBLE_DEVICES: not a number: \"GPU-1\"");
  ::setenv("STANDIN_VISIBLE_DEVICES", "8", 1);
  EXPECT_EQ(read_settings().error().message, "STANDIN_VISIBLE_DEVICES: there are 0 to 7: 8");
}

TEST_F(SettingsTest, AStateFileThatCannotBeWrittenIsAnError) {
  ::setenv("STANDIN", R"({"all": {"state_file": "/nowhere/at/all"}})", 1);
  EXPECT_FALSE(read_settings());
}

TEST_F(SettingsTest, AFaultMayEndWithTheFirstStarts) {
  ::setenv("STANDIN_VISIBLE_DEVICES", "0", 1);
  const auto words = R"({"standin:0": {"fail_at_copy": 9, "memory_bytes": 4096, "faulty_starts": 2,
                         "state_file": ")" +
                     state_file() + R"("}})";
  ::setenv("STANDIN", words.c_str(), 1);
  EXPECT_EQ(read_settings()->front().fail_at_copy, 9U);
  EXPECT_EQ(read_settings()->front().fail_at_copy, 9U);
  const auto third = read_settings()->front();
  EXPECT_EQ(third.fail_at_copy, 0U);
  EXPECT_EQ(third.memory_bytes, 4096U);
}

TEST_F(SettingsTest, TimesCountFromTheFirstStart) {
  ::setenv("STANDIN_VISIBLE_DEVICES", "0", 1);
  const auto words = R"({"standin:0": {"slow_after_s": 1e3, "lie_after_s": 1e3,
                         "crash_at_start": 2, "state_file": ")" +
                     state_file() + R"("}})";
  ::setenv("STANDIN", words.c_str(), 1);
  const auto first = read_settings()->front();
  EXPECT_TRUE(first.is_crashing);
  EXPECT_FALSE(first.is_slow());
  std::ofstream(state_file()) << "1 -2000\n";  // 2000 s before the machine's own start
  const auto second = read_settings()->front();
  EXPECT_TRUE(second.is_crashing);
  EXPECT_TRUE(second.is_slow());
  EXPECT_TRUE(second.is_lying());
  EXPECT_FALSE(read_settings()->front().is_crashing);
}

TEST_F(SettingsTest, WhatRecoversIsWellAgain) {
  ::setenv("STANDIN_VISIBLE_DEVICES", "0", 1);
  ::setenv("STANDIN", R"({"all": {"slow_after_s": 0, "recover_after_s": 0}})", 1);
  EXPECT_FALSE(read_settings()->front().is_slow());
  ::setenv("STANDIN", R"({"all": {"slow_after_s": 0, "recover_after_s": 1e6}})", 1);
  EXPECT_TRUE(read_settings()->front().is_slow());
}

TEST_F(SettingsTest, ALostDeviceIsAbsentForAWhile) {
  ::setenv("STANDIN_VISIBLE_DEVICES", "0", 1);
  const auto words =
      R"({"standin:0": {"lost_for_s": 1e9, "state_file": ")" + state_file() + R"("}})";
  ::setenv("STANDIN", words.c_str(), 1);
  EXPECT_FALSE(read_settings()->front().is_absent);
  std::ofstream(state_file() + ".lost") << "0\n";  // at the boot of the machine
  EXPECT_TRUE(read_settings()->front().is_absent);
}

}  // namespace
}  // namespace muster::standin
