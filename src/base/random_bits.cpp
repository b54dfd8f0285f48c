#include "base/random_bits.h"

#include <sys/random.h>
#include <sys/types.h>

#include "base/check.h"

namespace muster {

void fill_random(std::span<std::byte> bytes) {
  constexpr std::size_t kNeverCutShort = 256;
  MUSTER_CHECK(bytes.size() <= kNeverCutShort);
  MUSTER_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace muster
