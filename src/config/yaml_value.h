#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/schema.h"

namespace muster {

/// The value of a setting as it stands in a file: plain, a list or a mapping, with lines.
struct YamlValue {
  enum class Kind : std::uint8_t { Plain, List, Mapping };
  Kind kind = Kind::Plain;
  std::string text;  // Plain
  int line = 0;      // as people count
  std::vector<YamlValue> values = {};
  std::vector<std::string> keys = {};  // Mapping: one for each of `values`
};

/// The value as the setting's text, which `check_value` takes.
///
/// file_name: for messages, which name the line.
/// Errors: InvalidArgument (a list or mapping where the setting takes none; what is wrong with a
/// model of `models`).
Result<std::string> setting_text(const Setting& setting, const YamlValue& value,
                                 const std::string& file_name);

}  // namespace muster
