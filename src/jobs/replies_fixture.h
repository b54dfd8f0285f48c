#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jobs/replies.h"
#include "jobs/run_files.h"

namespace muster {

/// A run of `generate_replies` over files of a folder of its own, on workers that count: behind
/// "x" come "y", "z", "é", the digits up to "8", and the end (coordinator/decoder_fixture.h).
class RepliesFixture : public testing::Test {
 protected:
  /// name: of the folder; tests of one program that use different ones do not meet.
  RepliesFixture(const std::string& name, std::uint32_t device_count);
  ~RepliesFixture() override;

  void write_input(const std::string& name, const std::string& content);

  /// What workers that are started from now on are told (stand_ins/counting_worker).
  void order(const std::string& words);

  Result<RepliesReport> run(const std::function<bool()>& cancelled = [] { return false; });

  /// The same, which must end well.
  RepliesReport run_well();

  std::string error_of_run();

  /// Runs to the end, takes the output away, and leaves nothing behind: its bytes.
  std::string undisturbed_bytes();

  std::string output() const;

  /// Replies that devices have finished, by the last that was told of progress.
  std::uint64_t computed_count() const;

  bool exists(const std::filesystem::path& path) const { return std::filesystem::exists(path); }

  const SteadyClock clock_;
  const std::filesystem::path folder_;
  RepliesOptions options_;
  const RunFiles files_;
  CorpusProgress last_;
  std::vector<std::string> phases_;
  std::string notices_;
};

/// The reply to a prompt that ends in `last`, as the workers count: at most `limit` tokens.
std::string counted_reply(char last, std::size_t limit = 100);

}  // namespace muster
