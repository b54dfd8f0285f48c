#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http_message.h"

namespace muster {

/// What the head of an answer says of how long it took.
struct ServerStages {
  std::vector<std::pair<std::string, double>> stages = {};  // name, seconds
  /// Durations that are no time (no number, below 0, beyond thirty years), that have no name, or
  /// that come behind the sixteenth.
  std::uint64_t left_out = 0;
};

/// The stages that a server says an answer took: those of Server-Timing ("queue;dur=1.5,
/// compute;dur=20"), else those of text-embeddings-inference (x-tokenization-time, x-queue-time,
/// x-inference-time). Metrics without a duration are none. Of several durations of a metric the
/// first counts, also where it is no time.
///
/// Source: W3C, "Server Timing", section 3; text-embeddings-inference, router/src/http/server.rs.
/// Threads: pure.
ServerStages server_stages(const HttpHeaders& headers);

}  // namespace muster
