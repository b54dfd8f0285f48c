#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "service/run_output.h"

namespace muster {

/// What a run reads: none of it may be written over.
struct RunSources {
  std::vector<std::string> inputs;                    // paths, or "-"
  std::optional<std::filesystem::path> model_folder;  // of a model on this machine
};

/// Whether the files of a run can be written without harm: OUT can be a file, has no name that the
/// index of another output would have, and none of the names is, by device and inode, an input or
/// a file of the model, whichever way either is named. A file in the model's folder for which the
/// record or the journal of an earlier run vouches is none of the model. Opens no other.
///
/// Errors: InvalidArgument, naming both; NotFound where OUT's folder is missing.
Status check_conflicts(const RunFiles& files, const RunSources& sources);

}  // namespace muster
