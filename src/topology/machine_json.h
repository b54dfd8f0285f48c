#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/machine.h"

namespace muster {

/// A machine as a file describes it: docs/formats/machine.md. `file` stands in the messages.
///
/// Errors: Corrupt (no JSON, or no object), InvalidArgument (a key that is not known, with the
/// nearest; a value of another type or range; too many devices), NotFound (a GPU that is neither in
/// the catalogue nor under "classes").
Result<Machine> parse_machine_json(std::string_view file, std::string_view text);

/// The same form: what it says reads back as the same machine.
std::string machine_json(const Machine& machine);

}  // namespace muster
