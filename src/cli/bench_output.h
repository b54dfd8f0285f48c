#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "jobs/output_lock.h"

namespace muster {

/// Whether a result of `muster bench` may be written over what is at `out`: nothing, an empty file,
/// no file but a device or a pipe, or an earlier result; and whether it can be, in its folder.
/// Reads its first bytes.
///
/// Errors, naming `out`: InvalidArgument (another file, a folder, no name, "-"), NotFound (no such
/// folder), those of opening it and of writing into its folder.
Status check_bench_output(const std::filesystem::path& out);

/// Keeps `out` for one run, and removes what a killed one has left half-written of it; nullopt
/// where it is no file but a device or a pipe. After check_bench_output.
///
/// Errors: those of followed_path and OutputLock::take.
Result<std::optional<OutputLock>> hold_bench_output(const std::filesystem::path& out);

/// As check_bench_output, of a page of `muster bench report`, which is written over such a page
/// alone.
Status check_report_output(const std::filesystem::path& out);

}  // namespace muster
