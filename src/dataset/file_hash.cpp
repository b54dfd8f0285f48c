#include "dataset/file_hash.h"

#include <fmt/format.h>

#include "base/file.h"

namespace muster {

Status hash_bytes_of(const std::filesystem::path& path, std::uint64_t begin, std::uint64_t end,
                     Hash128& hash) {
  const auto file = MUSTER_TRY(MappedFile::open(path));
  const auto bytes = file.bytes();
  if (begin > end || bytes.size() < end) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: shorter than it should be: {} bytes, not {}",
                                                 path.string(), bytes.size(), end)};
  }
  hash.update(bytes.subspan(begin, end - begin));
  return Done{};
}

}  // namespace muster
