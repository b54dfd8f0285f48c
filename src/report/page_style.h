#pragma once

#include <string_view>

namespace muster {

/// The style sheet of a report: light and dark, from 390 pixels on, on paper. It names no file and
/// no font that a browser would have to fetch. Threads: pure.
std::string_view page_style();

}  // namespace muster
