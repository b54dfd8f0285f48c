#include "config/foreign_names.h"

namespace muster {
namespace {

constexpr std::string_view kTrue = "true";
constexpr std::string_view kFalse = "false";
constexpr std::string_view kAsItIs;  // muster does so without being told

constexpr std::string_view kNoTensorRt =
    "muster has no TensorRT engine; --precision chooses bf16 or fp16";
constexpr std::string_view kNoLearning =
    "muster learns no routing: it measures what each device's batches cost and gives work to "
    "whichever has room (--load-balancing-strategy auto or least_work)";
constexpr std::string_view kOneMachine =
    "muster starts a worker for each device of this machine itself, and needs no address, rank or "
    "number for them; --devices chooses";
constexpr std::string_view kBatchesByTokens =
    "muster cuts batches by tokens, since texts differ in length; --batch-tokens bounds a batch, "
    "--max-client-batch-size a request";

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
       {{kFalse, kAsItIs}},
       "muster looks at every device before it gives it work; --devices cpu asks for no GPU"},
      {"ENABLE_MPS",
       Word,
       {},
       {{kFalse, kAsItIs}},
       "one process has each GPU, so there is nothing for NVIDIA's MPS to share, and muster does "
       "not change the compute mode of a GPU"},
      {"ENABLE_NVLINK",
       Refused,
       {},
       {},
       "each GPU serves on its own and sends nothing to another; `muster devices --topology` shows "
       "the links"},
      {"NCCL_P2P_LEVEL",
       Refused,
       {},
       {},
       "serving uses no NCCL: each GPU serves on its own and sends nothing to another"},
      {"WORKER_ID", Refused, {}, {}, kOneMachine},
      {"MASTER_HOST", Refused, {}, {}, kOneMachine},
      {"MASTER_ADDR", Refused, {}, {}, kOneMachine},
      {"MASTER_PORT", Refused, {}, {}, kOneMachine},
      {"WORLD_SIZE", Refused, {}, {}, kOneMachine},
      {"RANK", Refused, {}, {}, kOneMachine},
  };
}

std::vector<ForeignName> placement_names() {
  using enum ForeignUse;
  return {
      {"LOAD_BALANCING_STRATEGY", Value, SettingId::LoadBalancingStrategy},
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
       {{kTrue, kAsItIs}},
       "muster always cuts batches from what waits; --batch-tokens and --batch-time bound them"},
      {"EMBEDDING_BATCH_SIZE", Refused, {}, {}, kBatchesByTokens},
      {"MAX_BATCH_SIZE", Refused, {}, {}, kBatchesByTokens},
      {"AUTO_TUNE_*",
       Refused,
       {},
       {},
       "there is nothing to tune beforehand: the size of batches follows their measured cost "
       "(--batch-time) and falls after an out-of-memory"},
      {"ENABLE_CONTINUOUS_LEARNING", Word, {}, {{kFalse, kAsItIs}}, kNoLearning},
      {"ENABLE_REINFORCEMENT_LEARNING", Word, {}, {{kFalse, kAsItIs}}, kNoLearning},
      {"CONTINUOUS_LEARNING_STORAGE_PATH", Refused, {}, {}, kNoLearning},
      {"EXPLORATION_RATE", Refused, {}, {}, kNoLearning},
      {"LEARNING_RATE", Refused, {}, {}, kNoLearning},
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
       {{kFalse, kAsItIs}},
       "TF32 changes results without saying so, and fp32 stays fp32; --precision bf16 or fp16 "
       "uses the tensor cores"},
      {"ENABLE_T4_OPTIMIZATION",
       Word,
       {},
       {{kFalse, kAsItIs}},
       "muster measures which precision is fastest instead of going by the name of a card; "
       "--precision chooses one"},
      {"ENABLE_CUDNN_BENCHMARK",
       Word,
       {},
       {{kFalse, kAsItIs}},
       "the encoders have no convolutions that cuDNN could try out"},
      {"USE_TENSORRT", Word, {}, {{kFalse, kAsItIs}}, kNoTensorRt},
      {"TENSORRT_PRECISION",
       Word,
       SettingId::Precision,
       {{"auto", "auto"}, {"fp32", "fp32"}, {"fp16", "fp16"}},
       "muster computes in fp32, bf16 or fp16; --precision chooses"},
      {"TENSORRT_CACHE_DIR", Refused, {}, {}, kNoTensorRt},
      {"TENSORRT_INT8_CALIBRATION", Word, {}, {{kFalse, kAsItIs}}, kNoTensorRt},
      {"TENSORRT_INT8_CALIBRATION_CACHE", Refused, {}, {}, kNoTensorRt},
      {"TENSORRT_*", Refused, {}, {}, kNoTensorRt},
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
       {{kTrue, kAsItIs}},
       "GET /metrics is always there, and costs nothing while nobody asks"},
      {"METRICS_PORT",
       Refused,
       {},
       {},
       "GET /metrics is on the port of --listen; `muster monitor --listen` serves the devices' "
       "readings on one of their own"},
      {"EXPOSE_WORKER_METRICS",
       Word,
       {},
       {{kTrue, kAsItIs}},
       "GET /metrics always has the figures of each worker"},
      {"ARROW_FLIGHT_*",
       Refused,
       {},
       {},
       "muster speaks HTTP, no Arrow Flight; application/octet-stream gives rows without JSON"},
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
