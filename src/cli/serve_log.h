#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/fleet.h"
#include "log/log_line.h"
#include "serving/generation_call.h"
#include "serving/inference_service.h"
#include "serving/serve_options.h"

namespace muster {

struct SaidLine {
  LogLevel level = LogLevel::Info;
  std::string text = {};
};

/// A server as it is when it begins to listen.
struct ServeFacts {
  const ServeOptions& options;
  std::vector<ServedModelStatus> models = {};
  std::vector<ServedDecoderStatus> decoders = {};
  std::optional<std::size_t> key_count = {};  // nullopt: there is no keys file
  std::uint16_t port = 0;
};

/// What an operator wants to know of a server before anything else: version, models, devices,
/// cache, who is let in, where it listens, and a request to try. Threads: pure.
std::vector<SaidLine> start_lines(const ServeFacts& facts);

/// "listening on http://127.0.0.1:8000 and unix:/run/muster.sock". Threads: pure.
std::string listening_line(const ServeFacts& facts);

/// A command for a shell that asks the first model of the server. With keys it takes the key from
/// the variable KEY. Threads: pure.
std::string sample_request(const ServeFacts& facts);

/// Says what has changed since the last time: devices by their states, models by theirs.
///
/// Threads: owned by one loop.
class StateWatch {
 public:
  std::vector<SaidLine> changes(const std::vector<GroupStatus>& devices,
                                const std::vector<ServedModelStatus>& models);

 private:
  std::map<std::string, std::string> devices_;  // name -> state
  std::map<std::string, std::string> models_;
};

}  // namespace muster
