// Counts what speaks against a device and not against its texts. A single failure may be the
// text's, so three are needed; a value that is not finite where another device computed a finite
// one is proof at once.

#include "coordinator/device_blame.h"

namespace muster {
namespace {

constexpr std::uint32_t kFailedMost = 3;
constexpr std::uint32_t kOutdoneMost = 3;

}  // namespace

bool DeviceBlame::on_failed() { return ++failed_count_ >= kFailedMost; }

bool DeviceBlame::on_outdone(bool was_not_finite) {
  return ++outdone_count_ >= kOutdoneMost || was_not_finite;
}

}  // namespace muster
