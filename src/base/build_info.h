#pragma once

#include <string_view>

namespace muster {

/// Version and commit of this build: "0.1.0 (cc14302)". Parent and workers must agree on it.
std::string_view build_name();

/// "0.1.0".
std::string_view version();

}  // namespace muster
