#pragma once

#include <vector>

#include "coordinator/fleet_view.h"
#include "serving/generation_call.h"

namespace muster {

/// The devices of a server as a whole: the state of each is that of its worker group, which embeds
/// and ranks, together with those of the workers of decoders on it.
///
///   drained      all of them, by an operator; until then it is draining
///   draining, restarting   one that an operator has asked to start again is not ready yet
///   otherwise    the worker group's; where that is idle, the best that a decoder's worker is in
///
/// decoders: those as well that are leaving. Threads: pure.
std::vector<GroupStatus> with_decoders(std::vector<GroupStatus> devices,
                                       const std::vector<ServedDecoderStatus>& decoders);

}  // namespace muster
