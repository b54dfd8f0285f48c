#pragma once

#include <filesystem>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// Opens a file that a run keeps beside its output, under a name that it makes up itself. Nobody
/// has named a link there, so none is followed: what it leads to is not this run's to write.
///
/// flags: of open(2). A file that O_CREAT makes has mode 0644, less the umask.
/// Errors: InvalidArgument (a link); those of the system.
Result<UniqueFd> open_own_file(const std::filesystem::path& path, int flags);

}  // namespace muster
