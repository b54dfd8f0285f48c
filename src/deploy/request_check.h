#pragma once

#include "base/result.h"
#include "deploy/container_request.h"

namespace muster {

/// Everything about a request that can be wrong in itself; `plan_deployment` calls it.
///
/// Errors: as `plan_deployment`.
Status check_request(const ContainerRequest& request);

/// Whether a device's id has the form of its kind: no comma or quote could lead `docker run` to
/// read two devices out of one name.
///
/// Errors: InvalidArgument, naming the form.
Status check_device_id(const ContainerDevice& device);

}  // namespace muster
