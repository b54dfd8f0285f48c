#include "doctor/availability.h"

#include <gtest/gtest.h>

#include "doctor/facts_fixture.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

TEST(Availability, AutoMeansEveryDevice) {
  const auto all = request_devices("auto", well_facts().inventory, std::nullopt);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->requested, (Names{"cuda:0", "cuda:1", "cpu:0"}));
  EXPECT_TRUE(all->all_available());
}

// One that was lost before it was opened tells no UUID, by which a worker could be given it.
TEST(Availability, AutoMeansALostDeviceTooAndNoHiddenOne) {
  auto inventory = well_facts().inventory;
  inventory.gpus[0].lost_reason = "GPU is lost (NVML 15)";
  inventory.gpus[0].hidden_by = "its driver, which tells no UUID of it";
  inventory.gpus[1].hidden_by = "CUDA_VISIBLE_DEVICES=0";
  const auto all = request_devices("auto", inventory, std::nullopt);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->requested, (Names{"cuda:0", "cpu:0"}));
}

TEST(Availability, AMissingDeviceDoesNotHideTheOthers) {
  const auto some = request_devices("cuda:1,cuda:7,cpu:0", well_facts().inventory, std::nullopt);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->requested, (Names{"cuda:1", "cuda:7", "cpu:0"}));
  EXPECT_EQ(some->available, (Names{"cuda:1", "cpu:0"}));
  EXPECT_EQ(some->unavailable, (Names{"cuda:7"}));
  EXPECT_NE(some->errors.at("cuda:7").find("no such device: cuda:7"), std::string::npos);
  EXPECT_FALSE(some->all_available());
  const auto checks = check_requested(*some);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].verdict, Verdict::Unfit);
  EXPECT_EQ(checks[0].device, "cuda:7");
}

TEST(Availability, AWordThatIsNoDeviceIsAnError) {
  const auto wrong = request_devices("cdua:0", well_facts().inventory, std::nullopt);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::InvalidArgument);
}

TEST(Availability, UnfitDevicesLeaveWithTheirReasons) {
  auto all = *request_devices("auto", well_facts().inventory, std::nullopt);
  const std::vector<Check> checks{
      {.name = "xid", .device = "cuda:0", .verdict = Verdict::Unfit, .sentence = "XID 79"},
      {.name = "ecc", .device = "cuda:0", .verdict = Verdict::Unfit, .sentence = "ECC 3"},
      {.name = "memory", .device = "cuda:1", .verdict = Verdict::Warning, .sentence = "full"},
      {.name = "torch", .verdict = Verdict::Unfit, .sentence = "no torch"}};
  leave_out_unfit(all, checks);
  EXPECT_EQ(all.available, (Names{"cuda:1", "cpu:0"}));
  EXPECT_EQ(all.unavailable, (Names{"cuda:0"}));
  EXPECT_EQ(all.errors.at("cuda:0"), "XID 79; ECC 3");
}

TEST(Availability, ASliceFallsWithItsGpu) {
  Availability slices{.requested = {"cuda:1:0", "cuda:10"},
                      .available = {"cuda:1:0", "cuda:10"},
                      .unavailable = {},
                      .errors = {},
                      .devices = {}};
  leave_out_unfit(
      slices,
      std::vector<Check>{
          {.name = "xid", .device = "cuda:1", .verdict = Verdict::Unfit, .sentence = "XID 79"}});
  EXPECT_EQ(slices.available, (Names{"cuda:10"}));
  EXPECT_EQ(slices.errors.at("cuda:1:0"), "XID 79");
}

}  // namespace
}  // namespace muster
