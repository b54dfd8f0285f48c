// Opens the library once for all tests of a suite, as the engine does.

#include "standin/torch/standin_fixture.h"

#include <dlfcn.h>

namespace muster::standin {

void StandinTest::SetUpTestSuite() {
  static void* const library =
      ::dlopen(MUSTER_BINARY_DIR "/bin/libmuster-standin.so", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  using Open = const char* (*)();
  const auto open = reinterpret_cast<Open>(::dlsym(library, "muster_standin_open"));
  ASSERT_NE(open, nullptr);
  const char* reason = open();
  ASSERT_EQ(reason, nullptr) << reason;
}

}  // namespace muster::standin
