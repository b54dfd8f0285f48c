#pragma once

#include <filesystem>

#include "base/result.h"

namespace muster {

/// Whether a result of `muster bench` may be written over what is at `out`: nothing, an empty file,
/// no file but a device or a pipe, or an earlier result. Reads its first bytes.
///
/// Errors: InvalidArgument, naming `out`; those of opening it.
Status check_bench_output(const std::filesystem::path& out);

/// The same of a page of `muster bench report`, which is written over such a page alone.
Status check_report_output(const std::filesystem::path& out);

}  // namespace muster
