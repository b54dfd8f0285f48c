#pragma once

#include <string>

#include "base/result.h"
#include "config/config.h"
#include "sweep/sweep_config.h"
#include "sweep/sweep_points.h"

namespace muster {

/// What a model does: "generate", "embed", "rerank".
///
/// Errors: those of finding it and of reading its folder.
Result<std::string> task_of_model(const std::string& model);

/// What the points of a file depend on: the task, by the models where the file does not say it;
/// the texts of the data set; what the models' files are; what `settings` say to a server that is
/// started here, and the builds of muster and torch. Not yet the devices.
///
/// Errors: InvalidArgument (models of different tasks, a model that does something else than the
/// file says, a key that means nothing for the task, a data set that is no file), those of finding
/// models and reading texts, each with its place in the file.
Result<SweepFacts> find_sweep_facts(const Config& settings, const SweepConfig& config);

/// Whether the texts of the data set and the models' files still are those of `facts`: each point
/// reads them anew, and is known by what they were.
///
/// Errors: InvalidArgument (they are not), those of find_sweep_facts.
Status check_sweep_facts(const Config& settings, const SweepConfig& config,
                         const SweepFacts& facts);

}  // namespace muster
