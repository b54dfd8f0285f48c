#pragma once

#include <string>
#include <string_view>

namespace muster {

/// A JSON object as a line that ends in its own checksum, with its line end:
/// `{"a":1,"sum":"0123456789abcdef"}`. The sum is the XXH3 (64 bits, hexadecimal) of the bytes
/// before `,"sum":`. object: in one line, with at least one member.
std::string checked_line(std::string object);

/// Whether a line, without its end, is one whose checksum is right.
bool is_checked_line(std::string_view line);

}  // namespace muster
