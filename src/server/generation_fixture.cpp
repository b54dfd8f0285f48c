#include "server/generation_fixture.h"

namespace muster {

// MUSTER_BINARY_DIR is for sources of tests alone.
std::string GenerationFixture::counting_worker() {
  return std::string(MUSTER_BINARY_DIR) + "/bin/counting_worker";
}

}  // namespace muster
