#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"

namespace muster {

/// What a server that was started for a benchmark says of itself: at first whether all of it has
/// come, at the end how it went.
struct ServerAccount {
  std::optional<std::string> precision = {};       // of its one model: "bf16"
  std::map<std::string, std::uint64_t> held = {};  // bytes that a device's worker held at most
  std::vector<std::string> faults = {};            // of devices that did not work all the time
  std::vector<std::string> coming = {};            // devices that start or load for the first time
                                                   // or wait for memory
  bool is_ready = false;                           // a device has what is served
  bool is_measuring = false;                       // a precision is, or is to be, before a load
  std::optional<Error> load_failure = {};          // why none can ever load it; nullopt: one may
  /// What a device that waits for memory says of it, nothing where it tries again just now;
  /// nullopt: none waits.
  std::optional<std::string> memory_wait = {};
};

/// How long a benchmark waits for memory that others have on its devices: as long as a job does.
///
/// Threads: not thread-safe.
class MemoryPatience {
 public:
  /// From the first of these that said that a device waits, without one in between that did not.
  /// Source: coordinator/memory_wait.h; a job's six tries are 1 + 2 + 4 + 8 + 16 s apart.
  static constexpr Duration kMost = std::chrono::seconds(31);

  /// Errors: ResourceExhausted with the server's words, once that has been too long.
  Status look(const ServerAccount& account, TimePoint now);

 private:
  std::optional<TimePoint> since_;
  std::string reason_;  // the last that was told
};

/// A load failure of which nothing says the kind is Unavailable.
///
/// From its answers of GET /v1/models and GET /v1/devices. held: while a worker loaded, or weights
/// and the largest batch; workers that do not count are left out. Threads: pure.
ServerAccount read_server_account(const std::string& models_answer,
                                  const std::string& devices_answer);

}  // namespace muster
