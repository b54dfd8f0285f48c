#pragma once

#include <string_view>

namespace muster {

/// Whether an Accept header names this media type, by its full name, with a weight above 0.
///
/// Threads: pure. Source: RFC 9110, sections 12.4.2 and 12.5.1.
bool names_type(std::string_view accept, std::string_view type);

}  // namespace muster
