#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "hub/hub_listing.h"

// A listing that is let in names only files below the folder, with a hash and a size.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto listing = muster::parse_hub_listing({reinterpret_cast<const char*>(data), size});
  if (!listing) {
    MUSTER_CHECK(!listing.error().message.empty());
    return 0;
  }
  MUSTER_CHECK(muster::is_hex(listing->commit, 40));
  for (const auto& file : listing->files) {
    MUSTER_CHECK(muster::is_safe_hub_path(file.path));
    MUSTER_CHECK(muster::is_hex(file.hash, 40) || muster::is_hex(file.hash, 64));
    MUSTER_CHECK(file.size <= 1'000'000'000'000);
  }
  return 0;
}
