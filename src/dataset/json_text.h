#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Appends `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD (a
/// file's name may hold any).
///
/// Source: RFC 8259 section 7.
void append_json_string(std::string_view text, std::string& out);

}  // namespace muster
