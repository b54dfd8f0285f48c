#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace muster {

/// What a server that was started for a benchmark says of itself: at first whether all of it has
/// come, at the end how it went.
struct ServerAccount {
  std::optional<std::string> precision = {};       // of its one model: "bf16"
  std::map<std::string, std::uint64_t> held = {};  // bytes that a device's worker held at most
  std::vector<std::string> faults = {};            // of devices that did not work all the time
  std::vector<std::string> coming = {};            // devices that start or load for the first time
  bool is_ready = false;                           // a device has what is served
  std::optional<Error> load_failure = {};          // why none can ever load it; nullopt: one may
};

/// A load failure of which nothing says the kind is Unavailable.
///
/// From its answers of GET /v1/models and GET /v1/devices. held: while a worker loaded, or weights
/// and the largest batch; workers that do not count are left out. Threads: pure.
ServerAccount read_server_account(const std::string& models_answer,
                                  const std::string& devices_answer);

}  // namespace muster
