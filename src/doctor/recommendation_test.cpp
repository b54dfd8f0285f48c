#include "doctor/recommendation.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "doctor/facts_fixture.h"

namespace muster {
namespace {

std::map<SettingId, std::string> settings_in(const std::string& yaml) {
  const auto read = parse_config_yaml(yaml, "muster.yaml");
  EXPECT_TRUE(read) << read.error().message;
  std::map<SettingId, std::string> settings;
  if (!read) return settings;
  for (const auto& given : *read) {
    EXPECT_TRUE(check_value(setting_of(given.id), given.value, given.place));
    settings[given.id] = given.value;
  }
  return settings;
}

TEST(Recommendation, NamesTheFitDevicesOfTheFastestKind) {
  const auto facts = well_facts();
  auto all = *request_devices("auto", facts.inventory, std::nullopt);
  leave_out_unfit(
      all,
      std::vector<Check>{
          {.name = "xid", .device = "cuda:0", .verdict = Verdict::Unfit, .sentence = "XID 79"}});
  const auto yaml = recommendation_yaml(recommend_settings(facts, all));
  const auto settings = settings_in(yaml);
  EXPECT_EQ(settings.at(SettingId::Devices), "cuda:1");
  EXPECT_EQ(settings.at(SettingId::TorchRoot), "/t/torch");
  EXPECT_EQ(settings.count(SettingId::Precision), 0U);  // nothing was measured
  EXPECT_NE(yaml.find("# not fit, or not here: cuda:0\n"), std::string::npos) << yaml;
}

TEST(Recommendation, PrecisionFollowsTheMeasurement) {
  auto facts = well_facts();
  auto cpu = *request_devices("cpu:0", facts.inventory, std::nullopt);
  facts.compute.push_back({.device = cpu.devices[0], .error = {}, .speeds = {}});
  auto& speeds = facts.compute[0].speeds;
  speeds = {{.precision = Precision::Fp32, .flops_per_second = 100e9},
            {.precision = Precision::Bf16, .flops_per_second = 180e9}};
  EXPECT_EQ(
      settings_in(recommendation_yaml(recommend_settings(facts, cpu))).at(SettingId::Precision),
      "auto");
  speeds[1].flops_per_second = 104e9;
  EXPECT_EQ(
      settings_in(recommendation_yaml(recommend_settings(facts, cpu))).at(SettingId::Precision),
      "fp32");
}

TEST(Recommendation, AQuotaBoundsTheCoresOfEachDevice) {
  auto facts = well_facts();
  facts.inventory.core_count = 8;
  facts.inventory.cpu_limit_cores = 2.5;
  const auto cpu = *request_devices("cpu:0", facts.inventory, std::nullopt);
  EXPECT_EQ(settings_in(recommendation_yaml(recommend_settings(facts, cpu)))
                .at(SettingId::CoresPerDevice),
            "2");
}

TEST(Recommendation, AnyPathReadsBackAsItself) {
  auto facts = well_facts();
  facts.torch->root = "/it's \"here\": #1\\n";
  facts.torch->how = "a\nb";
  const auto all = *request_devices("auto", facts.inventory, std::nullopt);
  EXPECT_EQ(
      settings_in(recommendation_yaml(recommend_settings(facts, all))).at(SettingId::TorchRoot),
      "/it's \"here\": #1\\n");
}

// It is written to a terminal or into a file that people read.
TEST(Recommendation, ReasonsAreBrokenBetweenWords) {
  const auto yaml = recommendation_yaml(
      {{.id = SettingId::Precision,
        .value = "auto",
        .because = "a narrower format multiplies 12.3 times as fast; auto takes it where the "
                   "model's vectors stay near fp32's"},
       {.id = SettingId::TorchRoot, .value = "/t", .because = std::string(90, 'x') + " y"}});
  EXPECT_EQ(yaml,
            "# a narrower format multiplies 12.3 times as fast; auto takes it where the\n"
            "# model's vectors stay near fp32's\n"
            "precision: 'auto'\n"
            "# " +
                std::string(90, 'x') + "\n# y\ntorch_root: '/t'\n");
}

TEST(Recommendation, WithoutAFitDeviceThereIsNone) {
  EXPECT_TRUE(recommend_settings(well_facts(), Availability{}).empty());
}

}  // namespace
}  // namespace muster
