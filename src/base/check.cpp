#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace muster {

void check_failed(const char* claim, const char* file, int line) {
  std::fprintf(stderr, "muster: broken invariant: %s (%s:%d)\n", claim, file, line);
  std::abort();
}

}  // namespace muster
