// Little-endian fields, read with the remaining size in hand: what a peer claims to send is
// compared with what has come before any of it is used. Fields are copied out by memcpy, so a
// payload needs no alignment; both ends are processes of one machine, whose byte order is the
// format's.

#include "wire/bytes.h"

#include <fmt/format.h>

namespace muster {

void ByteWriter::append(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), bytes, bytes + size);
}

void ByteWriter::text(std::string_view value) {
  number(static_cast<std::uint32_t>(value.size()));
  append(value.data(), value.size());
}

Result<std::string> ByteReader::text() {
  const auto size = MUSTER_TRY(number<std::uint32_t>());
  const auto bytes = MUSTER_TRY(take(size));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// To be asked last by each decoder: what is left over is of a message that this side does not know.
Status ByteReader::end() const {
  if (!rest_.empty()) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("message has bytes after its end: {}", rest_.size())};
  }
  return Done{};
}

// The only place that moves forward: every other read comes through it, so one comparison guards
// all.
Result<std::span<const std::byte>> ByteReader::take(std::size_t size) {
  if (size > rest_.size()) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("message ends too early: needs {} bytes, has {}", size, rest_.size())};
  }
  const auto bytes = rest_.first(size);
  rest_ = rest_.subspan(size);
  return bytes;
}

Error ByteReader::unknown_value(const char* what, std::uint64_t value) {
  return Error{ErrorKind::Corrupt,
               "message has an unknown " + std::string(what) + ": " + std::to_string(value)};
}

}  // namespace muster
