#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "config/config.h"

namespace muster {

/// A folder or file that was found, and how.
struct FoundPlace {
  std::filesystem::path path;
  std::string how;  // "python3 on the PATH"
};

/// The torch wheel: the setting, else the one this build was configured with, else what the python3
/// on the PATH imports. A given folder may be `torch` itself or the one that holds it.
///
/// Errors: NotFound and Unsupported for a given folder that is no torch 2.11; Unavailable when none
/// was given and none is found, saying how to mend it.
Result<FoundPlace> find_torch_root(const Config& config);

/// The folder `torch` at or in `folder`, if it holds torch 2.11.
///
/// Errors: NotFound (no libtorch_cpu.so), Unsupported (another version, by name).
Result<std::filesystem::path> check_torch_root(const std::filesystem::path& folder);

/// "2.11.0+cpu": what such a folder says of itself; empty where that cannot be read.
std::string torch_version(const std::filesystem::path& root);

/// muster-worker: the setting, else the file beside this program.
///
/// Errors: NotFound (nothing there), InvalidArgument (not a program).
Result<FoundPlace> find_worker_program(const Config& config);

/// Where caches are kept: the setting, else $XDG_CACHE_HOME/muster, else ~/.cache/muster, where ~
/// is HOME or else what the user database says. It need not exist.
///
/// Errors: Unavailable when there is no home folder either.
Result<FoundPlace> find_cache_folder(const Config& config);

}  // namespace muster
