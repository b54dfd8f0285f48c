#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "spec/telemetry.h"
#include "views/trends.h"

namespace muster {

/// Where a replay stands.
struct ReplayPlace {
  std::size_t index = 0;  // of the shown moment, from 0
  std::size_t count = 0;
  bool is_playing = false;
  std::uint32_t speed = 1;  // seconds of the recording in a second
};

/// What `muster top` draws from.
struct TopData {
  TelemetrySnapshot snapshot;
  std::vector<Trend> trends;            // as many as devices
  std::optional<double> sampler_cores;  // cores that the sampler kept busy since the last frame
  std::string clock;                    // "14:02:31", as the snapshot was taken
  std::optional<ReplayPlace> replay;
};

}  // namespace muster
