// Three vocabularies name the same float types: ours, config.json's and safetensors'. All are
// looked up in one table, so that no caller has to know where a name came from. Cache types of ggml
// pack 32 values with their scales, so bytes are counted by started block and not by value: q8_0
// takes 34 bytes for 32 values. Our own int8 has one scale for each vector. Source: ggml-common.h.

#include "planner/memory/memory_dtype.h"

#include <array>
#include <utility>

#include "planner/memory/memory_arithmetic.h"

namespace muster {
namespace {

template <typename Value, std::size_t kSize>
std::optional<Value> find(const std::array<std::pair<std::string_view, Value>, kSize>& table,
                          std::string_view name) {
  for (const auto& [key, value] : table) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> float_bytes(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::uint32_t>, 12> kTable{
      {{"fp32", 4},
       {"float32", 4},
       {"F32", 4},
       {"fp16", 2},
       {"float16", 2},
       {"F16", 2},
       {"bf16", 2},
       {"bfloat16", 2},
       {"BF16", 2},
       {"fp64", 8},
       {"float64", 8},
       {"F64", 8}}};
  return find(kTable, name);
}

std::uint32_t activation_bytes(const ModelDescription& model, const Workload& workload) {
  if (workload.dtype) return float_bytes(*workload.dtype).value_or(2);
  if (const auto bytes = float_bytes(model.shape.dtype)) return *bytes;
  for (const auto& tensor : model.tensors) {
    if (!tensor.is_floating || tensor.shape.size() < 2) continue;
    if (const auto bytes = float_bytes(tensor.dtype)) return *bytes;
  }
  return 2;
}

std::uint64_t CacheFormat::bytes_of(std::uint64_t value_count) const {
  return add_bytes(multiply_bytes(divide_up(value_count, values), bytes), vector_bytes);
}

std::optional<CacheFormat> find_cache_format(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, CacheFormat>, 13> kTable{
      {{"fp32", {1, 4}},
       {"fp16", {1, 2}},
       {"bf16", {1, 2}},
       {"int8", {1, 1, 4}},
       {"fp8", {1, 1}},
       {"fp8_e4m3", {1, 1}},
       {"fp8_e5m2", {1, 1}},
       {"q8_0", {32, 34}},
       {"q5_1", {32, 24}},
       {"q5_0", {32, 22}},
       {"q4_1", {32, 20}},
       {"q4_0", {32, 18}},
       {"iq4_nl", {32, 18}}}};
  return find(kTable, name);
}

}  // namespace muster
