// Eight bytes for the size of the header, the header in JSON, the data. A file may hold several
// tensors: `embeddings` is taken by its name, another one only when it is the only one that can be
// meant. Every offset is compared with the size of the file before it is used. Source: the
// safetensors format, github.com/huggingface/safetensors, "Format".

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "dataset/vector_layout.h"

namespace muster {
namespace {

namespace dom = simdjson::dom;

constexpr std::uint64_t kJsonSizeMax = 100'000'000;  // the format's own limit on its header

struct Tensor {
  std::array<std::uint64_t, 2> shape{};
  std::uint64_t begin = 0;  // of the data, from the end of the header
  std::uint64_t end = 0;
};

Error corrupt(std::string_view why) {
  return Error{ErrorKind::Corrupt, fmt::format("broken safetensors header: {}", why)};
}

// nullopt: a tensor, but not F32 with two dimensions.
Result<std::optional<Tensor>> read_tensor(dom::element value) {
  std::string_view dtype;
  dom::array shape;
  dom::array offsets;
  if (value["dtype"].get(dtype) != simdjson::SUCCESS ||
      value["shape"].get(shape) != simdjson::SUCCESS ||
      value["data_offsets"].get(offsets) != simdjson::SUCCESS || offsets.size() != 2) {
    return corrupt("a tensor without dtype, shape or data_offsets");
  }
  if (dtype != "F32" || shape.size() != 2) {
    return std::optional<Tensor>();
  }
  Tensor tensor;
  if (shape.at(0).get(tensor.shape[0]) != simdjson::SUCCESS ||
      shape.at(1).get(tensor.shape[1]) != simdjson::SUCCESS ||
      offsets.at(0).get(tensor.begin) != simdjson::SUCCESS ||
      offsets.at(1).get(tensor.end) != simdjson::SUCCESS) {
    return corrupt("a shape or an offset that is no natural number");
  }
  return std::optional(tensor);
}

Result<Tensor> choose_tensor(dom::object header) {
  std::optional<Tensor> only;
  std::size_t count = 0;
  for (const auto field : header) {
    if (field.key == "__metadata__") continue;
    const auto tensor = MUSTER_TRY(read_tensor(field.value));
    if (field.key == "embeddings") {
      if (tensor) return *tensor;
      return Error{ErrorKind::Unsupported,
                   "the tensor \"embeddings\" is not F32 with two dimensions"};
    }
    if (tensor) {
      only = tensor;
      ++count;
    }
  }
  if (count != 1) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("no tensor \"embeddings\", and {} F32 tensors of two dimensions", count)};
  }
  return *only;
}

}  // namespace

std::uint64_t safetensors_head_size(std::string_view begin) {
  std::uint64_t json_size = 0;
  if (begin.size() < sizeof json_size) return begin.size();
  std::memcpy(&json_size, begin.data(), sizeof json_size);
  // Of what is no head no more than that is looked at.
  return sizeof json_size + (json_size > kJsonSizeMax ? 0 : json_size);
}

Result<VectorLayout> parse_safetensors(std::string_view head, std::uint64_t file_size) {
  std::uint64_t json_size = 0;
  if (head.size() < sizeof json_size) {
    return corrupt("shorter than 8 bytes");
  }
  std::memcpy(&json_size, head.data(), sizeof json_size);
  if (json_size > kJsonSizeMax || json_size > file_size - sizeof json_size ||
      json_size > head.size() - sizeof json_size) {
    return corrupt("longer than the file, or than 100 MB");
  }
  dom::parser parser;
  dom::object header;
  if (parser.parse(simdjson::padded_string(head.substr(sizeof json_size, json_size))).get(header) !=
      simdjson::SUCCESS) {
    return corrupt("not a JSON object");
  }
  const auto tensor = MUSTER_TRY(choose_tensor(header));
  const std::uint64_t data = sizeof json_size + json_size;
  if (tensor.begin > tensor.end || tensor.end > file_size - data) {
    return corrupt(
        fmt::format("the data end at byte {}, the file has {}", tensor.end, file_size - data));
  }
  return checked_layout(tensor.shape[0], tensor.shape[1], data + tensor.begin,
                        tensor.end - tensor.begin);
}

}  // namespace muster
