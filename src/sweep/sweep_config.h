#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sweep/sweep_keys.h"

namespace muster {

/// What a file says of one key.
struct SweepValues {
  std::vector<std::string> texts = {};  // in their one form; several are a sweep; empty: not given
  std::string place = {};               // "bench.yaml:7: scenario.rate"
};

/// A file for `muster bench run`, checked as far as that needs neither model nor machine.
class SweepConfig {
 public:
  /// Reads the file's text, then the overrides ("scenario.num_samples=20") in their order.
  ///
  /// Errors: those of parse_config_tree and read_sweep_values; InvalidArgument (a key that is not
  /// known, or means nothing for the backend, with its place and the nearest right one; a key that
  /// two overrides have; keys that contradict each other or want another). Threads: pure.
  static Result<SweepConfig> read(const std::string& text, const std::string& file_name,
                                  std::span<const std::string> overrides);

  const SweepValues& at(SweepKey key) const { return values_[static_cast<std::size_t>(key)]; }
  bool is_given(SweepKey key) const { return !at(key).texts.empty(); }

  /// The value that counts where the key is no sweep: given, or usual; nullopt: neither.
  std::optional<std::string> text(SweepKey key) const;

  /// A server that runs already is measured.
  bool is_remote() const { return text(SweepKey::BackendType) == "openai"; }

  /// "bench.yaml:7: scenario.rate"; of a key that was not given "bench.yaml: scenario.rate".
  std::string place_of(SweepKey key) const;

  /// Refuses what was given and means nothing for the task ("generate", "completions", "embed",
  /// "rerank"), and what contradicts itself then.
  ///
  /// Errors: InvalidArgument, with the place.
  Status check_task(std::string_view task) const;

 private:
  explicit SweepConfig(std::string file_name) : file_name_(std::move(file_name)) {}

  Error wrong(SweepKey key, std::string_view what) const;
  Status check_backend();
  Status check_together() const;
  Status check_reasoning() const;
  Status check_sampling() const;
  Status check_tokens() const;

  std::string file_name_;
  std::array<SweepValues, kSweepKeyCount> values_;
};

}  // namespace muster
