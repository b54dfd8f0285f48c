#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http_message.h"

namespace muster {

/// The stages that a server says an answer took, in seconds: those of Server-Timing
/// ("queue;dur=1.5, compute;dur=20"), else those of text-embeddings-inference (x-tokenization-time,
/// x-queue-time, x-inference-time). Metrics without a duration are left out.
///
/// Source: W3C, "Server Timing", section 3; text-embeddings-inference, router/src/http/server.rs.
/// Threads: pure.
std::vector<std::pair<std::string, double>> server_stages(const HttpHeaders& headers);

}  // namespace muster
