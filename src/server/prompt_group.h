#pragma once

#include <functional>
#include <vector>

#include "server/exchange.h"
#include "server/generation_api.h"
#include "serving/generation_service.h"

namespace muster {

/// The calls of a request, one for each of its prompts. Where no seed is given each has its own:
/// the same prompt given twice has two replies.
std::vector<GenerationCall> calls_of(GenerationRequest request);

/// Gives several calls to the service that are answered as one: the choices of the second follow
/// those of the first, and the usage is that of all. Where one fails, so does the request, and the
/// others are cancelled; all are when the client goes. What is returned cancels them too.
///
/// calls: from one on, of as many choices each. Threads: the loop's.
std::function<void()> begin_replies(const ExchangePtr& exchange, std::vector<GenerationCall> calls,
                                    GenerationSink events);

}  // namespace muster
