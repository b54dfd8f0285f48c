#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/sweep_config.h"
#include "sweep/sweep_keys.h"

namespace muster {

/// What the points of a sweep depend on beside its file.
struct SweepFacts {
  std::string task;                                // "generate", "completions", "embed", "rerank"
  std::string texts_hash = {};                     // of the data set; empty: texts are made
  std::uint64_t text_count = 0;                    // of the data set
  std::uint64_t longest_text = 0;                  // of the data set, in bytes
  std::map<std::string, std::string> models = {};  // of a model: what its files are
  /// Where the file leaves the model to a server that runs already: the first that it lists.
  std::string served_model = {};
  /// Of a list of devices: those that it means here.
  std::map<std::string, std::string> devices = {};
  /// Of a list of devices: the hardware behind it, where muster serves the models itself.
  std::map<std::string, std::string> machines = {};
  /// What muster.yaml and the environment say to a server that is started here, as flags.
  std::string settings = {};
  /// Of muster and of torch, where muster serves the models itself: what is measured then.
  std::string build = {};
  std::string torch = {};
};

/// One combination of the values of a sweep, every setting resolved.
struct SweepPoint {
  std::string id = {};             // 16 hexadecimal digits: a hash of all that is measured and how
  std::string label = {};          // of the keys that are swept: "batch_size=8 torch_dtype=bf16"
  std::size_t number = 0;          // among all combinations, in the order of the keys
  std::string named_devices = {};  // as the file names them, before what is missing was left out
  std::array<std::string, kSweepKeyCount> values = {};  // empty: none

  const std::string& at(SweepKey key) const { return values[static_cast<std::size_t>(key)]; }
  std::string& at(SweepKey key) { return values[static_cast<std::size_t>(key)]; }
  bool has(SweepKey key) const { return !at(key).empty(); }
  std::uint64_t count(SweepKey key) const;  // of a Count that it has; 0: it has none
};

/// The lists of devices that a file names, as --devices takes them ("cuda:0,cuda:1", "2xcpu",
/// "auto"), each with the place that says so. Empty where a server that runs already is measured
/// and no device is named.
struct NamedDevices {
  std::string list;
  std::string place;
};
std::vector<NamedDevices> named_devices(const SweepConfig& config);

/// Every combination of the values of the keys that are swept, in an order that `scenario.seed`
/// shuffles. Points that turn out to be the same one, because devices are missing, are one.
///
/// Errors: InvalidArgument, with the place: a data set without texts or with too few, more made
/// texts than a run has, a batch that is larger than the samples, more clients than requests, more
/// than 10,000 points. Threads: pure.
Result<std::vector<SweepPoint>> sweep_points(const SweepConfig& config, const SweepFacts& facts);

/// The requests of a point and the texts that each takes; the texts of the last one may begin
/// again with the first.
struct PointLoad {
  std::uint64_t requests = 0;
  std::uint64_t texts_per_request = 1;  // that are measured; of rerank without the query
};
PointLoad load_of(const SweepPoint& point, std::string_view task);

}  // namespace muster
