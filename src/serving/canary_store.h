#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

/// Canary rows of a model by engine class: what a device of that class must answer, bit for bit.
using CanaryRows = std::map<std::string, std::vector<float>>;

/// The rows that an earlier run has kept under `name` (a hash); empty when there are none or the
/// file is broken. Threads: pure but for the file.
CanaryRows read_canary_rows(const std::filesystem::path& cache_folder, const std::string& name);

/// Errors: those of writing; a server goes on without.
Status write_canary_rows(const std::filesystem::path& cache_folder, const std::string& name,
                         const CanaryRows& rows);

}  // namespace muster
