#include <gtest/gtest.h>

#include "doctor/checks.h"
#include "doctor/expected_speed.h"
#include "doctor/facts_fixture.h"

namespace muster {
namespace {

ComputeOutcome outcome_of(const Device& device, double flops, double busy_share = 1) {
  ComputeOutcome outcome;
  outcome.device = device;
  outcome.speeds = {{.precision = Precision::Fp32,
                     .flops_per_second = flops,
                     .busy_share = busy_share,
                     .rounds = 5}};
  return outcome;
}

std::vector<Check> warnings(const DoctorFacts& facts) {
  auto checks = check_compute(facts);
  std::erase_if(checks, [](const Check& check) { return check.verdict < Verdict::Warning; });
  return checks;
}

TEST(ExpectedSpeed, ACpuIsCountedByItsWeakestFellows) {
  // 4 cores x 3e9 x 32, 16, 8.
  EXPECT_EQ(
      expected_cpu_speed(4, 3e9, {"avx2", "fma", "avx512f"}, Precision::Fp32)->flops_per_second,
      384e9);
  EXPECT_EQ(expected_cpu_speed(4, 3e9, {"avx2", "fma"}, Precision::Fp32)->flops_per_second, 192e9);
  EXPECT_EQ(expected_cpu_speed(4, 3e9, {"avx"}, Precision::Fp32)->flops_per_second, 96e9);
  EXPECT_FALSE(expected_cpu_speed(4, std::nullopt, {"fma"}, Precision::Fp32));
  EXPECT_FALSE(expected_cpu_speed(4, 3e9, {"fma"}, Precision::Bf16));
}

TEST(ExpectedSpeed, AGpuIsCountedByItsDataSheet) {
  const auto speed = expected_gpu_speed("NVIDIA H200", Precision::Bf16);
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->flops_per_second, 989.5e12);
  EXPECT_FALSE(expected_gpu_speed("NVIDIA H200", Precision::Fp32));
  EXPECT_FALSE(expected_gpu_speed("NVIDIA Unheard 9000", Precision::Bf16));
}

TEST(CheckCompute, HalfOfTheExpectedSpeedIsWellAndLessIsAWarning) {
  auto facts = well_facts();  // 2 cores x 2 GHz x 16 = 64 Gflop/s
  facts.compute = {outcome_of(facts.inventory.cpus[0], 32e9)};
  EXPECT_TRUE(warnings(facts).empty());
  facts.compute = {outcome_of(facts.inventory.cpus[0], 31e9)};
  const auto found = warnings(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "compute_speed");
  EXPECT_NE(found[0].sentence.find("48 % of 64.0 Gflop/s"), std::string::npos) << found[0].sentence;
}

TEST(CheckCompute, CoresThatOthersHadAreNamedAndNotCountedAsSlow) {
  auto facts = well_facts();
  facts.compute = {outcome_of(facts.inventory.cpus[0], 20e9, 0.5)};  // 40 Gflop/s of its own time
  const auto found = warnings(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "compute_shared");
  EXPECT_NE(found[0].sentence.find("50 %"), std::string::npos);
}

TEST(CheckCompute, AWrongProductAndAFailedTestAreUnfit) {
  auto facts = well_facts();
  facts.compute = {outcome_of(facts.inventory.cpus[0], 60e9)};
  facts.compute[0].speeds[0].wrong_row_count = 3;
  auto found = warnings(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, Verdict::Unfit);
  EXPECT_EQ(found[0].sentence, "a product of matrices is wrong: fp32, rows: 3");
  facts.compute[0].error = Error{ErrorKind::Unavailable, "the worker ended with exit code 1"};
  found = warnings(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, Verdict::Unfit);
  EXPECT_NE(found[0].sentence.find("exit code 1"), std::string::npos);
}

TEST(CheckCompute, AnOutlierAmongEqualDevicesIsNamed) {
  auto facts = well_facts();
  auto second = facts.inventory.cpus[0];
  second.index = 1;
  facts.compute = {outcome_of(facts.inventory.cpus[0], 60e9), outcome_of(second, 47e9)};
  const auto found = warnings(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "compute_outlier");
  EXPECT_EQ(found[0].device, "cpu:1");
  EXPECT_NE(found[0].sentence.find("78 %"), std::string::npos) << found[0].sentence;
}

TEST(CheckCompute, WithoutAnythingToCompareWithTheFigureStandsAlone) {
  auto facts = well_facts();
  facts.snapshot.devices[2].readings.clear(Reading::CpuFrequency);
  facts.compute = {outcome_of(facts.inventory.cpus[0], 1e9)};
  const auto checks = check_compute(facts);
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[1].verdict, Verdict::Well);
  EXPECT_EQ(checks[1].sentence, "nothing is known to compare it with: fp32 1.0 Gflop/s");
}

}  // namespace
}  // namespace muster
