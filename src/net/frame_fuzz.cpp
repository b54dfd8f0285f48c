// A stream of arbitrary bytes, cut into pieces at arbitrary places, must give the same frames
// whatever the cuts, and never a crash.

#include <algorithm>
#include <cstring>

#include "net/frame.h"

namespace {

struct Seen {
  std::vector<std::uint64_t> ids;
  std::size_t payload_bytes = 0;
  bool failed = false;
  bool operator==(const Seen&) const = default;
};

Seen feed(const std::uint8_t* data, std::size_t size, std::size_t piece) {
  muster::FrameAssembler assembler;
  Seen seen;
  while (size > 0) {
    const auto space = assembler.space();
    const auto count = std::min({size, piece, space.size()});
    std::memcpy(space.data(), data, count);
    data += count;
    size -= count;
    const auto status =
        assembler.advance(count,
                          [&](const muster::FrameHeader& header,
                              std::span<const std::byte> payload) -> muster::Status {
                            seen.ids.push_back(header.id);
                            seen.payload_bytes += payload.size();
                            return muster::Done{};
                          });
    if (!status) {
      seen.failed = true;
      return seen;
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto piece = size > 0 ? std::size_t{data[0]} + 1 : 1;
  if (!(feed(data, size, piece) == feed(data, size, size + 1))) __builtin_trap();
  return 0;
}
