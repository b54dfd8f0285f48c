#include "dataset/vector_layout.h"

#include <fmt/format.h>

#include <limits>

namespace muster {

Result<VectorLayout> checked_layout(std::uint64_t row_count, std::uint64_t dim,
                                    std::uint64_t offset, std::uint64_t size) {
  if (dim == 0 || dim > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorKind::Unsupported, fmt::format("vectors of this length: {}", dim)};
  }
  if (offset % alignof(float) != 0) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("the rows do not begin on a multiple of 4 bytes: {}", offset)};
  }
  const std::uint64_t row_size = dim * sizeof(float);
  if (size % row_size != 0 || size / row_size != row_count) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("the header says {} rows of {} values, the data are {} bytes",
                             row_count, dim, size)};
  }
  return VectorLayout{row_count, static_cast<std::uint32_t>(dim), offset};
}

}  // namespace muster
