#pragma once

#include <string_view>

#include "base/result.h"
#include "spec/machine.h"

namespace muster {

/// A machine that is only thought of:
///
///   sim:8xH100-80G                 one node with eight
///   sim:4xA10G-24G+2xL4-24G        one node with six
///   sim:1250x8xH100-80G            1,250 nodes with eight each
///   sim:2x8xH100-80G+4xL4-24G      two nodes, and one with four
///   sim:4xT4,host=64GB             host memory for offloaded layers; without it there is none
///   sim:2x8xH100,network=50GB      between nodes, bytes a second; without it NCCL's 12 GB
///
/// Its devices are those of `gpu_catalogue` with all their memory free, and links as in
/// `assumed_links`.
///
/// Errors: InvalidArgument (the text, a number, too many devices), NotFound (a GPU, with the
/// nearest).
Result<Machine> parse_machine(std::string_view text);

}  // namespace muster
