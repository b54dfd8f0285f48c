#include "dataset/file_hash.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/mapped_read.h"

namespace muster {

Status hash_bytes_of(const std::filesystem::path& path, std::uint64_t begin, std::uint64_t end,
                     Hash128& hash) {
  const auto file = MUSTER_TRY(MappedFile::open(path));
  const auto bytes = file.bytes();
  if (begin > end || bytes.size() < end) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: shorter than it should be: {} bytes, not {}",
                                                 path.string(), bytes.size(), end)};
  }
  if (!read_mapped(bytes, [&] { hash.update(bytes.subspan(begin, end - begin)); })) {
    return cut_short(path.string());
  }
  return Done{};
}

Error cut_short(const std::string& name) {
  return Error{ErrorKind::Corrupt,
               fmt::format("{}: another program has cut it shorter while it was read", name)};
}

}  // namespace muster
