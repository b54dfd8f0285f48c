#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <utility>

#include "engine/gpu_device.h"
#include "engine/guard.h"

namespace muster::engine {

/// Computes something by a kernel that torch may lack for a GPU, a precision or a size, which it
/// says when the kernel is launched: better while a model is loaded than at its first batch. Waits
/// for it.
///
/// what: "attention". Errors: throws NotImplementedError where torch lacks it; want of memory as it
/// is; and what the device itself has run into as it is, since that is no lack of torch's: such an
/// error stays with the process (gpu.h, `is_gpu_usable`).
template <typename Trial>
void try_kernel(at::Device device, const char* what, Trial&& trial) {
  const auto wait = [device] {
    if (!device.is_cpu()) wait_for_stream(device);
  };
  try {
    std::forward<Trial>(trial)();
    wait();
  } catch (const c10::Error& error) {
    if (is_out_of_memory(error)) throw;
    wait();  // throws where the device fails whatever it is asked for
    TORCH_CHECK_NOT_IMPLEMENTED(false, "torch has no ", what, " for this GPU in this precision: ",
                                error.what_without_backtrace());
  }
}

}  // namespace muster::engine
