#pragma once

#include <string_view>

#include "base/result.h"

namespace muster {

/// Whether clients can call a model by this name: in a path, in a log line, and without meaning a
/// route. A hub id ("BAAI/bge-m3") is one.
///
/// Errors: InvalidArgument (empty or over 256 bytes; control bytes or no UTF-8; a part between
/// slashes that is empty or nothing but dots; "load" or "unload", which are routes). Threads: pure.
Status check_model_name(std::string_view name);

}  // namespace muster
