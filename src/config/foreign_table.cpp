// The variables of other programs, as a table by topic: what each means here, or what muster does
// instead.
// A row without a setting explains itself: its reason is shown to the user, so it names what to
// use instead. The order of rows is that of warnings. Rows are built on first use, since they
// hold vectors.

#include "config/foreign_names.h"

namespace muster {
namespace {

constexpr std::string_view kTrue = "true";
constexpr std::string_view kFalse = "false";
constexpr std::string_view kAsItIs;  // muster does so without being told

constexpr std::string_view kNoTensorRt =
    "muster has no TensorRT engine, nothing to calibrate and no engines to keep; torch computes, "
    "and --precision chooses fp32, bf16 or fp16";
constexpr std::string_view kNoLearning =
    "muster learns no routing: it measures what each device's batches cost and gives work to "
    "whichever has room (--load-balancing-strategy auto or least_work)";
constexpr std::string_view kOneMachine =
    "muster starts a worker for each device of this machine itself, and needs no address, rank or "
    "number for them; --devices chooses";
constexpr std::string_view kBatchesByTokens =
    "muster cuts batches by tokens, since texts differ in length; --batch-tokens bounds a batch, "
    "--max-client-batch-size a request";

// A value that asks for what muster does not do.
ForeignWord unmet(std::string_view word) { return {word, {}, false}; }

std::vector<ForeignName> device_names() {
  using enum ForeignUse;
  const std::vector<ForeignWord> several{{kTrue, kAsItIs}, {kFalse, "1"}};
  return {
      {"GPU_COUNT", GpuCount, SettingId::Devices},
      {"PRIMARY_GPU_ID", PrimaryGpu, SettingId::Devices},
      {"SECONDARY_GPU_IDS", SecondaryGpus, SettingId::Devices},
      {"MULTI_GPU_DEVICE_IDS", GpuIds, SettingId::Devices},
      {"CPU_ONLY_MODE", Word, SettingId::Devices, {{kTrue, "cpu"}, {kFalse, kAsItIs}}},
      {"WORKER_COUNT", Value, SettingId::DeviceCountMost},
      {"ENABLE_MULTI_GPU", Word, SettingId::DeviceCountMost, several},
      {"MULTI_GPU_ENABLED", Word, SettingId::DeviceCountMost, several},
      {"DISABLE_GPU_CHECK",
       Word,
       {},
       {{kFalse, kAsItIs}, unmet(kTrue)},
       "muster looks at every device before it gives it work; --devices cpu asks for no GPU"},
      {"ENABLE_MPS",
       Word,
       {},
       {{kFalse, kAsItIs}, unmet(kTrue)},
       "one process has each GPU, so there is nothing for NVIDIA's MPS to share, and muster does "
       "not change the compute mode of a GPU"},
      {"ENABLE_NVLINK",
       Word,
       {},
       {{kFalse, kAsItIs}, unmet(kTrue)},
       "each GPU serves on its own and sends nothing to another; `muster devices --topology` shows "
       "the links"},
      {"NCCL_P2P_LEVEL",
       Unmet,
       {},
       {},
       "serving uses no NCCL: each GPU serves on its own and sends nothing to another"},
      {"WORKER_ID", Unmet, {}, {}, kOneMachine},
      {"MASTER_HOST", Unmet, {}, {}, kOneMachine},
      {"MASTER_ADDR", Unmet, {}, {}, kOneMachine},
      {"MASTER_PORT", Unmet, {}, {}, kOneMachine},
      {"WORLD_SIZE", Unmet, {}, {}, kOneMachine},
      {"RANK", Unmet, {}, {}, kOneMachine},
  };
}

std::vector<ForeignName> placement_names() {
  using enum ForeignUse;
  return {
      {"LOAD_BALANCING_STRATEGY",
       Value,
       SettingId::LoadBalancingStrategy,
       {unmet("continuous_learning")},
       kNoLearning},
      {"MULTI_GPU_STRATEGY",
       Word,
       SettingId::LoadBalancingStrategy,
       {{"auto", "auto"},
        {"round_robin", "round_robin"},
        {"memory", "memory_usage"},
        {"utilization", "compute_load"}}},
      {"MEMORY_THRESHOLD", Percent, SettingId::MemoryThreshold},
      {"GPU_MEMORY_FRACTION", Value, SettingId::MemoryThreshold},
      {"ENABLE_DYNAMIC_BATCHING",
       Word,
       {},
       {{kTrue, kAsItIs}, unmet(kFalse)},
       "muster always cuts batches from what waits; --batch-tokens and --batch-time bound them"},
      {"EMBEDDING_BATCH_SIZE", Unmet, {}, {}, kBatchesByTokens},
      {"MAX_BATCH_SIZE", Unmet, {}, {}, kBatchesByTokens},
      {"AUTO_TUNE_*",
       Unmet,
       {},
       {},
       "there is nothing to tune beforehand: the size of batches follows their measured cost "
       "(--batch-time) and falls after an out-of-memory"},
      {"ENABLE_CONTINUOUS_LEARNING", Word, {}, {{kFalse, kAsItIs}, unmet(kTrue)}, kNoLearning},
      {"ENABLE_REINFORCEMENT_LEARNING", Word, {}, {{kFalse, kAsItIs}, unmet(kTrue)}, kNoLearning},
      {"CONTINUOUS_LEARNING_STORAGE_PATH", Unmet, {}, {}, kNoLearning},
      {"EXPLORATION_RATE", Unmet, {}, {}, kNoLearning},
      {"LEARNING_RATE", Unmet, {}, {}, kNoLearning},
  };
}

std::vector<ForeignName> engine_names() {
  using enum ForeignUse;
  // Without reduced precision nothing is left that tensor cores would compute: TF32 is off.
  const std::vector<ForeignWord> reduced{{kTrue, kAsItIs}, {kFalse, "fp32"}};
  return {
      {"ENABLE_TENSOR_CORES", Word, SettingId::Precision, reduced},
      {"ENABLE_AMP", Word, SettingId::Precision, reduced},
      {"ENABLE_TF32",
       Word,
       {},
       {{kFalse, kAsItIs}, unmet(kTrue)},
       "TF32 changes results without saying so, and fp32 stays fp32; --precision bf16 or fp16 "
       "uses the tensor cores"},
      {"ENABLE_T4_OPTIMIZATION",
       Word,
       {},
       {{kFalse, kAsItIs}, unmet(kTrue)},
       "muster measures which precision is fastest instead of going by the name of a card; "
       "--precision chooses one"},
      {"ENABLE_CUDNN_BENCHMARK",
       Word,
       {},
       {{kFalse, kAsItIs}, unmet(kTrue)},
       "the encoders have no convolutions that cuDNN could try out"},
      {"USE_TENSORRT", Word, {}, {{kFalse, kAsItIs}, unmet(kTrue)}, kNoTensorRt},
      {"TENSORRT_PRECISION",
       Word,
       SettingId::Precision,
       {{"auto", "auto"}, {"fp32", "fp32"}, {"fp16", "fp16"}, unmet("int8")},
       "a GPU computes in fp32, bf16 or fp16; --precision chooses one, and without it the fastest "
       "that is exact enough is taken"},
      {"TENSORRT_CACHE_DIR", Unmet, {}, {}, kNoTensorRt},
      {"TENSORRT_INT8_CALIBRATION", Word, {}, {{kFalse, kAsItIs}, unmet(kTrue)}, kNoTensorRt},
      {"TENSORRT_INT8_CALIBRATION_CACHE", Unmet, {}, {}, kNoTensorRt},
      {"TENSORRT_*", Unmet, {}, {}, kNoTensorRt},
  };
}

std::vector<ForeignName> service_names() {
  using enum ForeignUse;
  return {
      {"EMBEDDING_MODEL", Value, SettingId::Models},
      {"EMBEDDING_CACHE_ENABLED",
       Word,
       SettingId::CacheEnabled,
       {{kTrue, kTrue}, {kFalse, kFalse}}},
      {"EMBEDDING_CACHE_SIZE", Value, SettingId::CacheEntries},
      {"EMBEDDING_CACHE_TTL", Seconds, SettingId::CacheTtl},
      {"EMBEDDING_CACHE_PERSISTENCE", Value, SettingId::CacheFile},
      {"LOG_LEVEL",
       Word,
       SettingId::LogLevel,
       {{"debug", "debug"},
        {"info", "info"},
        {"warning", "warning"},
        {"warn", "warning"},
        {"error", "error"},
        {"critical", "error"}}},
      {"MULTI_GPU_STATS_FILE", Value, SettingId::StatsFile},
      {"MULTI_GPU_STATS_INTERVAL", Seconds, SettingId::StatsInterval},
      {"ENABLE_METRICS",
       Word,
       {},
       {{kTrue, kAsItIs}, unmet(kFalse)},
       "GET /metrics is always there, and costs nothing while nobody asks"},
      {"METRICS_PORT",
       Unmet,
       {},
       {},
       "GET /metrics is on the port of --listen; `muster monitor --listen` serves the devices' "
       "readings on one of their own"},
      {"EXPOSE_WORKER_METRICS",
       Word,
       {},
       {{kTrue, kAsItIs}, unmet(kFalse)},
       "GET /metrics always has the figures of each worker"},
      {"ARROW_FLIGHT_*",
       Unmet,
       {},
       {},
       "muster speaks HTTP, no Arrow Flight; application/octet-stream gives rows without JSON"},
      {"HANA_*",
       Unmet,
       {},
       {},
       "muster is no client of a database; vectors are answered over HTTP, and `muster embed` "
       "writes them to files"},
  };
}

}  // namespace

std::span<const ForeignName> foreign_names() {
  static const std::vector<ForeignName> all = [] {
    std::vector<ForeignName> rows;
    for (auto&& part : {device_names(), placement_names(), engine_names(), service_names()}) {
      rows.insert(rows.end(), part.begin(), part.end());
    }
    return rows;
  }();
  return all;
}

}  // namespace muster
