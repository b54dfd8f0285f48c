#include "cli/sweep/init_file.h"

#include <gtest/gtest.h>

#include "sweep/sweep_config.h"
#include "sweep/sweep_points.h"

namespace muster {
namespace {

Device gpu(std::uint32_t index) {
  return {.kind = DeviceKind::Cuda, .index = index, .memory_free_bytes = 80'000'000'000};
}

// What is written is read, and every key of it that stands as a comment would be, too.
TEST(BenchFileText, RunsAsItStands) {
  for (const std::string task : {"embed", "rerank", "generate"}) {
    const auto text = bench_file_text("org/na\"me", task, {{.kind = DeviceKind::Cpu}});
    const auto config = SweepConfig::read(text, "b.yaml", {});
    ASSERT_TRUE(config) << config.error().message << text;
    EXPECT_TRUE(config->check_task(task));
    EXPECT_EQ(config->text(SweepKey::Model), "org/na\"me");
    EXPECT_EQ(config->text(SweepKey::DeviceIds), "cpu:0");
    EXPECT_EQ(named_devices(*config).front().list, "cpu:0");
    EXPECT_TRUE(sweep_points(*config, {.task = task}));
  }
}

TEST(BenchFileText, NamesGpusByTheirNumbers) {
  const auto text = bench_file_text("m", "embed", {gpu(0), gpu(2)});
  const auto config = SweepConfig::read(text, "b.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(named_devices(*config).front().list, "cuda:0,cuda:2");
  // 5 % of 80 GB stay free.
  EXPECT_NE(text.find("# max_memory: {0: 76GB, 2: 76GB}\n"), std::string::npos) << text;
}

TEST(BenchFileText, HasCommentsThatAreKeys) {
  auto text = bench_file_text("m", "embed", {gpu(0)});
  for (const std::string key : {"max_memory: ", "dataset_name: ", "text_column_name: ",
                                "carbon_intensity_g_per_kwh: ", "carbon_intensity_source: "}) {
    const auto at = text.find("  # " + key);
    ASSERT_NE(at, std::string::npos) << key;
    text.replace(at, 4, "  ");
  }
  const auto length = text.find("    sequence_length");  // a data set has its own
  text.erase(length, text.find('\n', length) - length);
  const auto config = SweepConfig::read(text, "b.yaml", {});
  ASSERT_TRUE(config) << config.error().message << text;
  EXPECT_EQ(config->text(SweepKey::MaxMemory), "0=76GB");
}

}  // namespace
}  // namespace muster
