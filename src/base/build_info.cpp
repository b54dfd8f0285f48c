#include "base/build_info.h"

namespace muster {

std::string_view build_name() { return MUSTER_BUILD_NAME; }

std::string_view version() { return MUSTER_VERSION; }

}  // namespace muster
