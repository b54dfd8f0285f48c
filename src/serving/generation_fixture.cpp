#include "serving/generation_fixture.h"

namespace muster {

// MUSTER_BINARY_DIR is for sources of tests alone.
std::filesystem::path GenerationServiceTest::counting_worker() {
  return std::filesystem::path(MUSTER_BINARY_DIR) / "bin/counting_worker";
}

}  // namespace muster
