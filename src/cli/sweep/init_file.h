#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "spec/device.h"

namespace muster {

/// A file for `muster bench run` that measures `model` on `devices`, with a comment for each key.
///
/// task: "generate", "embed" or "rerank". devices: at least one, all of a kind. Threads: pure.
std::string bench_file_text(const std::string& model, const std::string& task,
                            const std::vector<Device>& devices);

/// `muster bench init [MODEL] [-o FILE]`: writes such a file for this machine, which runs as it
/// stands: its fit GPUs or else its CPUs, and MODEL or else the first one of the hub cache that can
/// be run. The value is the exit code.
///
/// Errors: NotFound (no model, with the command that fetches one), those of the model and of
/// looking for devices; InvalidArgument (a file of that name is there, or it is no name).
Result<int> write_bench_file(const CommandContext& context);

}  // namespace muster
