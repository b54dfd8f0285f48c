#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "config/config.h"

// Any bytes as muster.yaml: settings with a place each, or an error with a message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto given =
      muster::parse_config_yaml({reinterpret_cast<const char*>(data), size}, "muster.yaml");
  if (!given) {
    MUSTER_CHECK(given.error().message.starts_with("muster.yaml:"));
    return 0;
  }
  for (const auto& one : *given) MUSTER_CHECK(one.place.starts_with("muster.yaml:"));
  return 0;
}
