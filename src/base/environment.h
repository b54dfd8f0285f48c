#pragma once

#include <optional>
#include <string>

namespace muster {

/// A variable of the environment; nullopt when it is not set, which is not the same as empty.
///
/// Threads: not while another thread changes the environment.
std::optional<std::string> environment_variable(const char* name);

}  // namespace muster
