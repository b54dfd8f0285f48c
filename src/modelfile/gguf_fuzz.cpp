#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "modelfile/gguf.h"

// Any bytes as a file: an Error, or tensors that lie inside the file, none over another.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto header = muster::parse_gguf_header(bytes, size);
  if (!header) {
    MUSTER_CHECK(!header.error().message.empty());
    return 0;
  }
  std::uint64_t total = 0;
  for (const auto& tensor : header->tensors) {
    MUSTER_CHECK(tensor.size <= size && tensor.begin <= size - tensor.size);
    total += tensor.size;
  }
  MUSTER_CHECK(total <= size);
  if (const auto shape = muster::parse_gguf_shape(*header)) {
    MUSTER_CHECK(shape->hidden_size > 0 && !shape->layers.empty());
    for (const auto& layer : shape->layers) {
      MUSTER_CHECK(layer.head_count > 0 && layer.head_size > 0);
    }
  }
  return 0;
}
