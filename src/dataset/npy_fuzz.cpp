#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "dataset/jsonl_vectors.h"
#include "dataset/memory_source.h"
#include "dataset/vector_layout.h"

namespace {

void check_layout(const muster::Result<muster::VectorLayout>& layout, std::size_t size) {
  if (!layout) return;
  MUSTER_CHECK(layout->dim > 0 && layout->offset % 4 == 0 && layout->offset <= size);
  MUSTER_CHECK(layout->row_count <= (size - layout->offset) / 4 / layout->dim);
}

}  // namespace

// The three formats that a file of vectors can have; each input is tried as all of them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  // As a file is read: its beginning, its head, and no more.
  const auto first = [&](std::uint64_t bytes) {
    return file.substr(0, std::min<std::uint64_t>(bytes, size));
  };
  const auto begin = first(muster::kHeadBegin);
  check_layout(muster::parse_npy(first(muster::npy_head_size(begin)), size), size);
  check_layout(muster::parse_safetensors(first(muster::safetensors_head_size(begin)), size), size);
  auto source = std::make_unique<muster::MemorySource>(std::string(file), 64);
  const auto vectors = muster::read_jsonl_vectors(std::move(source), "fuzz");
  MUSTER_CHECK(!vectors || vectors->values.size() % vectors->dim == 0);
  return 0;
}
