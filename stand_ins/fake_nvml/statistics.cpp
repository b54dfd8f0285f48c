#include "fake_nvml/statistics.h"

#include <algorithm>

#include "fake_nvml/driver.h"
#include "fake_nvml/mapped_block.h"

namespace muster::fake_nvml {
namespace {

Statistics& own_statistics() {
  static Statistics statistics{};
  return statistics;
}

/// Where calls are counted now. A mapped file stays mapped: a thread may be counting in it.
std::atomic<Statistics*>& current_statistics() {
  static std::atomic<Statistics*> current{&own_statistics()};
  return current;
}

std::filesystem::path& current_file() {
  static std::filesystem::path file;
  return file;
}

}  // namespace

Status count_in_file(const std::filesystem::path& path) {
  if (path == current_file()) return Done{};
  void* block = MUSTER_TRY(map_shared(path, sizeof(Statistics)));
  auto* const statistics = static_cast<Statistics*>(block);
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    std::copy(kFunctionNames[i].begin(), kFunctionNames[i].end(),
              statistics->rows[i].function.begin());
  }
  statistics->version = 1;
  statistics->row_count = kFunctionCount;
  statistics->magic = Statistics::kMagic;
  current_file() = path;
  current_statistics().store(statistics, std::memory_order_release);
  return Done{};
}

void count_call(Function function) {
  auto& rows = current_statistics().load(std::memory_order_acquire)->rows;
  rows[static_cast<std::size_t>(function)].calls.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t call_count(Function function) {
  auto& rows = current_statistics().load(std::memory_order_acquire)->rows;
  return rows[static_cast<std::size_t>(function)].calls.load(std::memory_order_relaxed);
}

}  // namespace muster::fake_nvml
