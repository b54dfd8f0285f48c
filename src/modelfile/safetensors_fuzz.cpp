#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.h"
#include "modelfile/safetensors.h"
#include "modelfile/weight_files.h"

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
  }
  const auto names = muster::parse_weight_index({reinterpret_cast<const char*>(data), size});
  if (names) {
    for (const auto& name : *names) MUSTER_CHECK(name.find('/') == std::string::npos);
  }
  return 0;
}
