#pragma once

#include <string>

#include "base/result.h"
#include "deploy/deployment.h"

namespace muster {

/// A deployment as a compose file: a service per container. `$` is doubled, or compose would put
/// variables in.
///
/// Errors: InvalidArgument: a device without a name. Threads: pure. Source: compose-spec, spec.md
/// and deploy.md ("devices": `capabilities` is required, `count` and `device_ids` exclude each
/// other).
Result<std::string> compose_text(const Deployment& deployment);

}  // namespace muster
