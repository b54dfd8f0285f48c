#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "jobs/run_files.h"

namespace muster {

/// What a run reads: none of it may be written over.
struct RunSources {
  std::vector<std::string> inputs;                    // paths, or "-"
  std::optional<std::filesystem::path> model_folder;  // of a model on this machine, or its one file
};

/// Whether the files of a run can be written without harm: none of their names is a folder or a
/// device, OUT has no name that the index of another output would have, and none of the names is,
/// by device and inode, an input or a file of the model, whichever way either is named. A file in
/// the model's folder for which the record or the journal of an earlier run vouches is none of the
/// model. Opens no other.
///
/// Errors: InvalidArgument, naming both, or for a folder that cannot be written into; NotFound
/// where OUT's folder is missing.
Status check_conflicts(const RunFiles& files, const RunSources& sources);

/// Whether a run may write under its names: none is a symbolic link, dangling or not. Renaming
/// would replace the link, and whoever made one wants the bytes where it leads.
///
/// Errors: InvalidArgument, naming link and target.
Status check_no_links(const RunFiles& files);

}  // namespace muster
