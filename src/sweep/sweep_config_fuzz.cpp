#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "sweep/point_words.h"
#include "sweep/sweep_config.h"
#include "sweep/sweep_points.h"

// Any bytes as a benchmark's file: a configuration whose points can be worked out and said as
// commands, or an error with a message that names the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = muster::SweepConfig::read(text, "bench.yaml", {});
  if (!config) {
    MUSTER_CHECK(config.error().message.starts_with("bench.yaml"));
    return 0;
  }
  // Thousands of points say no more than some dozens.
  std::size_t count = 1;
  for (const auto& row : muster::sweep_keys()) {
    count *= std::max<std::size_t>(1, config->at(row.key).texts.size());
    if (count > 64) return 0;
  }
  for (const auto* task : {"generate", "completions", "embed", "rerank"}) {
    if (!config->check_task(task)) continue;
    const auto points = muster::sweep_points(*config, {.task = task, .text_count = 100});
    if (!points) {
      MUSTER_CHECK(!points.error().message.empty());
      continue;
    }
    for (const auto& point : *points) MUSTER_CHECK(!muster::point_words(point, task).empty());
  }
  return 0;
}
