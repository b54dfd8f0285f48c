#pragma once

#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>

namespace muster::load {

/// Two programs that are compared take turns, so that both meet the same moods of the machine: the
/// `mine`-th turn of every `count` is this program's. By the steady clock, which all processes
/// share. The default is always one's own turn.
struct Turns {
  std::uint32_t mine = 0;  // from 0
  std::uint32_t count = 1;
  std::chrono::steady_clock::duration length = std::chrono::seconds(3);

  /// From "I/N"; false when it is something else.
  bool read(const std::string& text) {
    char slash = 0, rest = 0;
    std::istringstream in(text);
    return (in >> mine >> slash >> count) && slash == '/' && !(in >> rest) && mine < count;
  }

  /// `at`, or the begin of the next own turn when that is another's.
  std::chrono::steady_clock::time_point own_from(std::chrono::steady_clock::time_point at) const {
    const auto index = at.time_since_epoch() / length;
    const auto others = (mine + count - static_cast<std::uint32_t>(index % count)) % count;
    return others == 0 ? at : std::chrono::steady_clock::time_point((index + others) * length);
  }
};

}  // namespace muster::load
