#pragma once

#include <string>

#include "base/clock.h"
#include "net/http_message.h"
#include "scheduler/admission.h"

namespace muster {

/// Adds what a key has left of its limits per minute: `x-ratelimit-limit-requests`,
/// `x-ratelimit-remaining-requests`, `x-ratelimit-reset-requests`, and the same for tokens.
///
/// Source: OpenAI, API reference, "Rate limits", headers.
void add_rate_limits(const CallerUsage& usage, HttpHeaders& headers);

/// "6m0s", "1s", "120ms", rounded up. Source: OpenAI's headers have Go's time.Duration in text.
std::string reset_text(Duration left);

}  // namespace muster
