#pragma once

#include <string>
#include <string_view>

namespace muster {

/// A YAML document as JSON: what stands without quotes and reads as null, a truth value or a number
/// is one, all else is text. Keys keep their order.
///
/// Errors: an empty text for what is no YAML. Source: YAML 1.2.2, section 10.3.2 (the core schema).
std::string yaml_as_json(std::string_view yaml);

}  // namespace muster
