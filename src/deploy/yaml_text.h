#pragma once

#include <string>
#include <string_view>

namespace muster {

/// A text as a YAML scalar that every reader, of YAML 1.1 or 1.2, takes for this text: plain where
/// that is safe, else in double quotes ("80", "yes" and "0x1f" are quoted, or they would be read as
/// something else).
///
/// Bytes that are no UTF-8 become U+FFFD.
std::string yaml_scalar(std::string_view text);

}  // namespace muster
