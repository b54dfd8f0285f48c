#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace muster {

/// Appends `1.5,-0.25`: the shortest decimals that read back as the same float32. All must be
/// finite.
///
/// Source: short_decimal.h; RFC 8259 section 6 takes every form it writes.
void append_floats(std::span<const float> values, std::string& out);

/// Appends the base64 of the values' bytes in little-endian order, padded.
///
/// Source: base64.h.
void append_base64(std::span<const float> values, std::string& out);

bool are_finite(std::span<const float> values);

}  // namespace muster
