// Where the build has put what the tests of serving run.

#include "serving/serving_fixture.h"

namespace muster {

std::string InferenceServiceTest::zero_worker() {
  return std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker";
}

std::string InferenceServiceTest::tiny() {
  return std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny";
}

}  // namespace muster
