#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/template_nodes.h"

namespace muster {

/// Reads a template into statements.
///
/// Errors: InvalidArgument for broken syntax, Unsupported for a statement, filter or test that is
/// not known, by its name with the nearest known one, ResourceExhausted for one longer than 1 MB or
/// nested deeper than 64; each with the line.
/// Source: Jinja 3.1, parser.py, whose order of operators this keeps.
Result<TemplateBlock> parse_template(std::string_view source);

}  // namespace muster
