#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
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
/// One model that works makes a device ready: the reason of a ready one says which it lacks
/// (`missing_models`). decoders: those as well that are leaving. Threads: pure.
std::vector<GroupStatus> with_decoders(std::vector<GroupStatus> devices,
                                       const std::vector<ServedModelStatus>& models,
                                       const std::vector<ServedDecoderStatus>& decoders);

/// Whether a model that embeds or ranks is on its way into a worker there, which takes the device's
/// cores; not where that waits for memory. Threads: pure.
bool is_loading(const GroupStatus& device);

/// Which models are to be on the device and do not work there, and why: "tiny cannot be loaded: no
/// weights; chat waits for memory: cuda:0 is out of memory". Empty: none; what is on its way there,
/// or is being unloaded, is not missed. A decoder that is failed is not on its way, though its
/// worker is started again. models: those that are served. Threads: pure.
std::string missing_models(const GroupStatus& device, const std::vector<ServedModelStatus>& models,
                           const std::vector<ServedDecoderStatus>& decoders);

/// Why nothing of what a server is to serve ever will be: each model has failed to load on every
/// device that is to have it, and none of those tries again before somebody asks for it; or the
/// workers of a decoder have ended before they were ready, life after life. Of the kind that the
/// first load's error was, with the worker's last words.
///
/// nullopt: one works or is coming; one may come back by itself (a worker waits for its restart or
/// for memory, a device is in quarantine); an operator lets a device of one rest; nothing is to be
/// served. devices: worker groups, without what decoders do on them. Threads: pure.
std::optional<Error> hopeless_error(const std::vector<GroupStatus>& devices,
                                    const std::vector<ServedModelStatus>& models,
                                    const std::vector<ServedDecoderStatus>& decoders);

}  // namespace muster
