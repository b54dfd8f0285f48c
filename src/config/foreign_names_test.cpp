#include "config/foreign_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace muster {
namespace {

std::string read_as_text(const std::vector<std::string>& environment) {
  const auto values = read_foreign_environment(environment);
  if (!values) return values.error().message;
  std::string text;
  for (const auto& one : values->given) {
    text += std::string(setting_of(one.id).name) + "=" + one.value + " by " + one.place + "\n";
  }
  for (const auto& warning : values->warnings) text += "warning: " + warning + "\n";
  return text;
}

// What a whole run makes of it.
std::string effective(const std::vector<std::string>& environment, SettingId id) {
  const auto config = Config::load({.flags = {},
                                    .environment = environment,
                                    .file = std::nullopt,
                                    .working_folder = "/nonexistent",
                                    .reads_foreign_names = true});
  return config ? config->text(id).value_or("none") : config.error().message;
}

TEST(ForeignNames, HaveEveryNameOfTheListAndNoOther) {
  std::ifstream file(std::string(MUSTER_SOURCE_DIR) + "/src/config/testdata/foreign_names.txt");
  ASSERT_TRUE(file);
  std::set<std::string> wanted;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') wanted.insert(line);
  }
  std::set<std::string> there;
  for (const auto& row : foreign_names()) {
    EXPECT_TRUE(there.insert(std::string(row.name)).second) << row.name;
  }
  EXPECT_EQ(there, wanted);
}

TEST(ForeignNames, SetSomethingOrSayWhyNot) {
  for (const auto& row : foreign_names()) {
    const bool has_unmet = std::any_of(row.words.begin(), row.words.end(),
                                       [](const ForeignWord& word) { return !word.is_met; });
    EXPECT_EQ(has_unmet || row.use == ForeignUse::Unmet, !row.reason.empty()) << row.name;
    EXPECT_TRUE(row.setting || !row.reason.empty()) << row.name;
    EXPECT_FALSE(row.use == ForeignUse::Word && row.words.empty()) << row.name;
    EXPECT_FALSE(row.use == ForeignUse::Unmet && (row.setting || !row.words.empty())) << row.name;
    for (const auto& word : row.words) {
      EXPECT_TRUE(word.ours.empty() || (row.setting && word.is_met)) << row.name << word.theirs;
    }
  }
}

TEST(ForeignNames, HaveTheUnitsOfTheirPrograms) {
  EXPECT_EQ(effective({"MEMORY_THRESHOLD=85.0"}, SettingId::MemoryThreshold), "0.85");
  EXPECT_EQ(effective({"GPU_MEMORY_FRACTION=0.9"}, SettingId::MemoryThreshold), "0.9");
  EXPECT_EQ(effective({"MULTI_GPU_STATS_INTERVAL=30.0"}, SettingId::StatsInterval), "30s");
  EXPECT_EQ(effective({"MULTI_GPU_STATS_INTERVAL=0.5"}, SettingId::StatsInterval), "500ms");
  EXPECT_EQ(effective({"EMBEDDING_CACHE_SIZE=10000"}, SettingId::CacheEntries), "10000");
  EXPECT_EQ(effective({"EMBEDDING_CACHE_TTL=3600"}, SettingId::CacheTtl), "3600s");
  EXPECT_EQ(effective({"EMBEDDING_CACHE_TTL=0"}, SettingId::CacheTtl), "0s");  // for ever
  EXPECT_EQ(effective({"EMBEDDING_CACHE_ENABLED=False"}, SettingId::CacheEnabled), "false");
  EXPECT_EQ(effective({"EMBEDDING_CACHE_PERSISTENCE=/a"}, SettingId::CacheFile), "/a");
  EXPECT_EQ(effective({"LOG_LEVEL=WARN"}, SettingId::LogLevel), "warning");
  EXPECT_EQ(effective({"LOG_LEVEL=CRITICAL"}, SettingId::LogLevel), "error");
  EXPECT_EQ(effective({"MULTI_GPU_STRATEGY=memory"}, SettingId::LoadBalancingStrategy),
            "memory_usage");
  EXPECT_EQ(effective({"MULTI_GPU_STRATEGY=utilization"}, SettingId::LoadBalancingStrategy),
            "compute_load");
  EXPECT_EQ(effective({"LOAD_BALANCING_STRATEGY=round_robin"}, SettingId::LoadBalancingStrategy),
            "round_robin");
  EXPECT_EQ(effective({"MULTI_GPU_ENABLED=false"}, SettingId::DeviceCountMost), "1");
  EXPECT_EQ(effective({"MULTI_GPU_ENABLED=true"}, SettingId::DeviceCountMost), "none");
  EXPECT_EQ(effective({"WORKER_COUNT=3"}, SettingId::DeviceCountMost), "3");
  EXPECT_EQ(effective({"ENABLE_TENSOR_CORES=0"}, SettingId::Precision), "fp32");
  EXPECT_EQ(effective({"ENABLE_TENSOR_CORES=1"}, SettingId::Precision), "auto");
  EXPECT_EQ(effective({"TENSORRT_PRECISION=fp16"}, SettingId::Precision), "fp16");
  EXPECT_EQ(effective({"CPU_ONLY_MODE=true"}, SettingId::Devices), "cpu");
  EXPECT_EQ(effective({"EMBEDDING_MODEL=org/name"}, SettingId::Models),
            "[{\"model\":\"org/name\"}]");
}

TEST(ForeignNames, SayTogetherWhichGpus) {
  EXPECT_EQ(effective({"GPU_COUNT=2"}, SettingId::Devices), "2xcuda");
  EXPECT_EQ(effective({"GPU_COUNT=0"}, SettingId::Devices), "auto");
  EXPECT_EQ(effective({"PRIMARY_GPU_ID=1"}, SettingId::Devices), "cuda:1");
  EXPECT_EQ(effective({"GPU_COUNT=1", "PRIMARY_GPU_ID=3"}, SettingId::Devices), "cuda:3");
  EXPECT_EQ(effective({"GPU_COUNT=0", "PRIMARY_GPU_ID=0"}, SettingId::Devices), "auto");
  EXPECT_EQ(effective({"GPU_COUNT=4", "PRIMARY_GPU_ID=0"}, SettingId::Devices), "4xcuda");
  EXPECT_EQ(effective({"GPU_COUNT=4", "PRIMARY_GPU_ID=2"}, SettingId::Devices),
            "cuda:2,cuda:0,cuda:1,cuda:3");
  EXPECT_EQ(read_as_text({"GPU_COUNT=0", "PRIMARY_GPU_ID=2"}),
            "devices=auto by GPU_COUNT\n"
            "warning: the environment asks for what muster does not do: PRIMARY_GPU_ID=2 "
            "(GPU_COUNT=0 takes all GPUs in their order, and none comes first; --devices or "
            "SECONDARY_GPU_IDS name them in another one)\n");
  EXPECT_EQ(
      effective({"SECONDARY_GPU_IDS=2, 3", "PRIMARY_GPU_ID=1", "GPU_COUNT=3"}, SettingId::Devices),
      "cuda:1,cuda:2,cuda:3");
  EXPECT_EQ(effective({"MULTI_GPU_DEVICE_IDS=0,2"}, SettingId::Devices), "cuda:0,cuda:2");
  EXPECT_EQ(
      effective({"SECONDARY_GPU_IDS=2,3", "PRIMARY_GPU_ID=1", "GPU_COUNT=2"}, SettingId::Devices),
      "GPU_COUNT=2 and SECONDARY_GPU_IDS=2,3 disagree");
  EXPECT_EQ(effective({"GPU_COUNT=2", "PRIMARY_GPU_ID=5"}, SettingId::Devices),
            "GPU_COUNT=2 and PRIMARY_GPU_ID=5 disagree");
}

TEST(ForeignNames, ThatDisagreeAreNamedBoth) {
  EXPECT_EQ(
      effective({"MEMORY_THRESHOLD=80", "GPU_MEMORY_FRACTION=0.9"}, SettingId::MemoryThreshold),
      "MEMORY_THRESHOLD and GPU_MEMORY_FRACTION set the same thing and disagree: 0.8 and "
      "0.9");
  EXPECT_EQ(
      effective({"MEMORY_THRESHOLD=90", "GPU_MEMORY_FRACTION=0.9"}, SettingId::MemoryThreshold),
      "0.9");
  EXPECT_EQ(effective({"MULTI_GPU_DEVICE_IDS=0,1", "PRIMARY_GPU_ID=1"}, SettingId::Devices),
            "MULTI_GPU_DEVICE_IDS and PRIMARY_GPU_ID set the same thing and disagree: "
            "cuda:0,cuda:1 and cuda:1");
  EXPECT_EQ(effective({"LOAD_BALANCING_STRATEGY=round_robin", "MULTI_GPU_STRATEGY=auto"},
                      SettingId::LoadBalancingStrategy),
            "LOAD_BALANCING_STRATEGY and MULTI_GPU_STRATEGY set the same thing and disagree: "
            "round_robin and auto");
}

TEST(ForeignNames, ThatAskForWhatIsNotDoneAreNamedInOneWarningWithWhatHolds) {
  const std::string tensorrt =
      "muster has no TensorRT engine, nothing to calibrate and no engines to keep; torch computes, "
      "and --precision chooses fp32, bf16 or fp16";
  const std::string beginning = "warning: the environment asks for what muster does not do: ";
  EXPECT_EQ(read_as_text({"USE_TENSORRT=true"}),
            beginning + "USE_TENSORRT=true (" + tensorrt + ")\n");
  EXPECT_EQ(read_as_text({"ENABLE_METRICS=no", "TENSORRT_CACHE_DIR=/a", "TENSORRT_MAX_WORKSPACE=1",
                          "USE_TENSORRT=1"}),
            beginning + "USE_TENSORRT=1, TENSORRT_CACHE_DIR, TENSORRT_MAX_WORKSPACE (" + tensorrt +
                "); ENABLE_METRICS=no (GET /metrics is always there, and costs nothing while "
                "nobody asks)\n");
  EXPECT_EQ(read_as_text({"HANA_PASSWORD=secret"}).find("secret"), std::string::npos);
  EXPECT_EQ(read_as_text({"LOAD_BALANCING_STRATEGY=continuous_learning"})
                .rfind(beginning + "LOAD_BALANCING_STRATEGY=continuous_learning (", 0),
            0U);
}

TEST(ForeignNames, ThatAskForWhatIsSoAnyhowSayNothing) {
  for (const auto* entry :
       {"USE_TENSORRT=false", "ENABLE_NVLINK=false", "ENABLE_MPS=0", "ENABLE_TF32=no",
        "ENABLE_METRICS=true", "ENABLE_DYNAMIC_BATCHING=true", "MULTI_GPU_ENABLED=true"}) {
    EXPECT_EQ(read_as_text({entry}), "") << entry;
  }
}

TEST(ForeignNames, AreCheckedForForm) {
  EXPECT_EQ(read_as_text({"MEMORY_THRESHOLD=200"}),
            "MEMORY_THRESHOLD must be a percentage above 0, at most 100: \"200\"");
  EXPECT_EQ(read_as_text({"GPU_COUNT=two"}),
            "GPU_COUNT must be a whole number from 0 to 4096: \"two\"");
  EXPECT_EQ(read_as_text({"ENABLE_MPS=perhaps"}), "ENABLE_MPS must be true or false: \"perhaps\"");
  EXPECT_EQ(read_as_text({"MULTI_GPU_STRATEGY=random"}),
            "MULTI_GPU_STRATEGY must be one of auto, round_robin, memory, utilization: \"random\"");
  EXPECT_EQ(read_as_text({"TENSORRT_PRECISION=int4"}),
            "TENSORRT_PRECISION must be one of auto, fp32, fp16: \"int4\"");
  EXPECT_EQ(effective({"LOAD_BALANCING_STRATEGY=round_robyn"}, SettingId::LoadBalancingStrategy),
            "LOAD_BALANCING_STRATEGY must be one of auto, least_work, round_robin, memory_usage, "
            "compute_load, task_type, static_partition, expression: \"round_robyn\"; did you mean "
            "round_robin?");
}

TEST(ForeignNames, StandBetweenTheFileAndMustersOwn) {
  const std::vector<std::string> both{"MEMORY_THRESHOLD=70", "MUSTER_MEMORY_THRESHOLD=0.6"};
  EXPECT_EQ(effective(both, SettingId::MemoryThreshold), "0.6");
  EXPECT_EQ(effective({"MEMORY_THRESHOLD="}, SettingId::MemoryThreshold), "0.8");
  const auto without = Config::load({.flags = {},
                                     .environment = {"USE_TENSORRT=1"},
                                     .file = std::nullopt,
                                     .working_folder = "/nonexistent"});
  ASSERT_TRUE(without);
  EXPECT_TRUE(without->warnings().empty());  // of no interest to a command that does not serve
}

TEST(ForeignNames, ThoseThatAreSetAreFoundWithTheirRows) {
  const auto found = foreign_names_in({"HOME=/", "GPU_COUNT=2", "MAX_BATCH_SIZE=", "TENSORRT_X=1"});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "GPU_COUNT");
  EXPECT_EQ(found[0].row->setting, SettingId::Devices);
  EXPECT_EQ(found[1].name, "TENSORRT_X");
  EXPECT_EQ(found[1].row->name, "TENSORRT_*");
}

}  // namespace
}  // namespace muster
