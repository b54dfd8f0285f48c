#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

/// A value of a YAML file, with the line at which its key stands.
struct ConfigNode {
  enum class Kind : std::uint8_t { Nothing, Plain, List, Mapping };
  Kind kind = Kind::Nothing;
  std::string text = {};  // Plain
  int line = 0;           // as people count
  std::vector<ConfigNode> values = {};
  std::vector<std::string> keys = {};  // Mapping: one for each of `values`
};

/// Reads one YAML document. An empty one is Nothing.
///
/// file_name: for messages, which name the line.
/// Errors: Corrupt (no YAML), InvalidArgument (no UTF-8, more than one document, a reference, a key
/// that is no plain name or stands twice, more than eight levels, 2,000 keys of a mapping or
/// 100,000 values). Threads: pure.
Result<ConfigNode> parse_config_tree(const std::string& text, const std::string& file_name);

}  // namespace muster
