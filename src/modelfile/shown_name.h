#pragma once

#include <string>
#include <string_view>

namespace muster {

/// A name out of a file as a message shows it: quoted, cut at 80 bytes, without control characters,
/// so that a hostile one floods neither the message nor the terminal.
std::string shown_name(std::string_view name);

}  // namespace muster
