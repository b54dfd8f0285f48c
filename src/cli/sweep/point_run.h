#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/bench_options.h"
#include "cli/command.h"
#include "cli/sweep/placement_check.h"
#include "sweep/point_record.h"
#include "sweep/point_store.h"
#include "sweep/sweep_config.h"
#include "sweep/sweep_points.h"

namespace muster {

/// The command that measures a point, read as if it had been typed.
struct PointCommand {
  std::vector<std::string> words;  // "muster", "bench", "embed", …
  Arguments arguments;
  ConfigSources sources;
  Config config;
  BenchPlan plan;
};

/// Errors: what `muster bench embed` and the like refuse, with the place in the file instead of the
/// flag; several rates in one text.
Result<PointCommand> point_command(const CommandContext& context, const SweepConfig& config,
                                   const SweepPoint& point, std::string_view task);

/// Whether a server's address is one, and whether the files that every point reads beside its texts
/// can be read: the tokenizer, the key of a server. Nobody is asked yet.
///
/// Errors: those of parse_http_url and of reading files, with the place.
Status check_point_files(const CommandContext& context, const SweepConfig& config,
                         PointCommand command);

/// The first model that the server of a file lists, where the file leaves it to the server; empty
/// where it lists none.
///
/// Errors: those of finding the server and of first_listed_model, with the place.
Result<std::string> find_served_model(const CommandContext& context, const SweepConfig& config,
                                      PointCommand command);

/// Whether the server of a file that measures one that runs already answers anything within 5 s;
/// one that does not is asked once more.
/// Threads: blocks the calling thread.
bool gives_sign_of_life(const SweepConfig& config);

/// A point to be measured.
struct PointOrder {
  const SweepPoint* point = nullptr;
  std::string_view task;
  PointAvailability availability = {};
  MemoryLimits limits = {};
  std::string settings = {};  // SweepFacts::settings
};

/// A point that was measured.
struct MeasuredPoint {
  std::string json;  // the whole result
  KeptPoint kept;
};

/// Measures one point. A run that cannot be trusted is a point that is not valid, and no error.
///
/// Errors: those of `measure` and of watching the devices; Unavailable where the server was lost
/// while it was measured.
Result<MeasuredPoint> measure_point(const CommandContext& context, const SweepConfig& config,
                                    const PointOrder& order);

}  // namespace muster
