#pragma once

#include <string_view>

namespace muster {

/// A JSON number as the library reads it: digits as a whole number, rounded once, then divided or
/// multiplied by a power of ten and rounded again. A seventh of all scores differ by one in the
/// last place from the nearest number, and of two equally good ways through a word that decides.
///
/// Infinity for a number that is too large. `number`: valid JSON; what follows is not looked at.
/// Source: serde_json 1.0, Deserializer::parse_any_number without the feature float_roundtrip.
double library_number(std::string_view number);

}  // namespace muster
