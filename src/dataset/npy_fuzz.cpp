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
  check_layout(muster::parse_npy(file), size);
  check_layout(muster::parse_safetensors(file), size);
  auto source = std::make_unique<muster::MemorySource>(std::string(file), 64);
  const auto vectors = muster::read_jsonl_vectors(std::move(source), "fuzz");
  MUSTER_CHECK(!vectors || vectors->values.size() % vectors->dim == 0);
  return 0;
}
