#include "dataset/vector_header.h"

#include <fmt/format.h>

#include "base/check.h"

namespace muster {

std::string npy_header(std::uint64_t row_count, std::uint32_t dim) {
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
  constexpr std::size_t kDictSize = kVectorHeaderSize - kMagic.size() - 2;
  std::string header(kMagic);
  header += static_cast<char>(kDictSize & 0xFF);
  header += static_cast<char>(kDictSize >> 8);
  header += fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
                        row_count, dim);
  MUSTER_CHECK(header.size() < kVectorHeaderSize);
  header.resize(kVectorHeaderSize - 1, ' ');
  return header + '\n';
}

std::string safetensors_header(std::uint64_t row_count, std::uint32_t dim) {
  constexpr std::size_t kJsonSize = kVectorHeaderSize - 8;
  std::string header(8, '\0');
  header[0] = static_cast<char>(kJsonSize);
  header +=
      fmt::format(R"({{"embeddings":{{"dtype":"F32","shape":[{},{}],"data_offsets":[0,{}]}}}})",
                  row_count, dim, row_count * dim * sizeof(float));
  MUSTER_CHECK(header.size() <= kVectorHeaderSize);
  header.resize(kVectorHeaderSize, ' ');
  return header;
}

}  // namespace muster
