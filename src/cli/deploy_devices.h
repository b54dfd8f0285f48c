#pragma once

#include "base/result.h"
#include "cli/deploy_options.h"
#include "containers/container_model.h"

namespace muster {

/// Settles which devices the containers get: those named, those of a plan, or the fewest that hold
/// the model. Fills in the request's devices and what follows from them, and adds notes.
///
/// facts: the model's, or why they are not known.
/// Errors: InvalidArgument where devices are named in two ways or in none; Unavailable without a
/// GPU to choose from; those of `planned_containers` and `parse_container_devices`.
Status choose_deploy_devices(const Arguments& arguments, const ContainerHost& host,
                             const Result<ModelFacts>& facts, DeployOptions& options);

}  // namespace muster
