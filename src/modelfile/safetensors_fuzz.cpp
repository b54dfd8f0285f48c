#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "modelfile/model_description.h"
#include "modelfile/safetensors.h"
#include "modelfile/weight_files.h"

namespace {

constexpr std::string_view kConfig =
    R"({"model_type":"llama","hidden_size":4,"num_hidden_layers":1,"num_attention_heads":1})";

// Whatever the tensors are called, each ends in one unit or the model is refused.
void check_units(const muster::SafetensorsHeader& header) {
  std::vector<muster::WeightTensor> tensors;
  for (const auto& [name, entry] : header.tensors) {
    tensors.push_back({name, std::string(muster::tensor_type_name(entry.type)), entry.shape,
                       entry.size, muster::is_plain_float(entry.type)});
  }
  const auto model = muster::describe_tensors(kConfig, std::move(tensors));
  if (!model) return;
  std::size_t placed = 0;
  for (const auto& unit : model->units) placed += unit.tensors.size();
  MUSTER_CHECK(placed == header.tensors.size());
}

}  // namespace

// Any bytes as a file: an Error, or a header whose every tensor lies inside the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto header = muster::parse_safetensors_header(bytes, size)) {
    std::uint64_t total = 0;
    for (const auto& [name, entry] : header->tensors) {
      MUSTER_CHECK(entry.begin <= size && entry.size <= size - entry.begin);
      total += entry.size;
    }
    MUSTER_CHECK(total <= size);
    check_units(*header);
  }
  const auto names = muster::parse_weight_index({reinterpret_cast<const char*>(data), size});
  if (names) {
    for (const auto& name : *names) MUSTER_CHECK(name.find('/') == std::string::npos);
  }
  return 0;
}
