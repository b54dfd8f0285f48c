#pragma once

#include <filesystem>

#include "base/result.h"

namespace muster {

/// Whether a result of `muster bench` may be written over what is at `out`: nothing, an empty file,
/// no file but a device or a pipe, or an earlier result; and whether it can be, in its folder.
/// Reads its first bytes.
///
/// Errors, naming `out`: InvalidArgument (another file, a folder), NotFound (no such folder), those
/// of opening it and of writing into its folder.
Status check_bench_output(const std::filesystem::path& out);

/// The same of a page of `muster bench report`, which is written over such a page alone.
Status check_report_output(const std::filesystem::path& out);

}  // namespace muster
