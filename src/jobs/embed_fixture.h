#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jobs/embed.h"

namespace muster {

/// A run of `embed_corpus` over files of a folder of its own: what runs on the devices here and
/// runs on a server have in common. The deriving test says who computes.
class EmbedFixture : public testing::Test {
 protected:
  /// name: of the folder; tests of one program that use different ones do not meet.
  explicit EmbedFixture(const std::string& name);
  ~EmbedFixture() override;

  void write_input(const std::string& name, const std::string& content);

  Result<EmbedReport> run(const std::function<bool()>& cancelled = [] { return false; });

  bool nothing_is_final() const;

  /// Vectors and index.
  std::string output_bytes() const;

  const SteadyClock clock_;
  const std::filesystem::path folder_;
  EmbedOptions options_;
  std::optional<CorpusProgress> first_;  // what was told of all runs of the test: the first
  CorpusProgress last_;                  // and the last
  std::vector<std::string> phases_;
  std::string notices_;
};

/// The same on workers of this machine, processes without torch whose rows tell the tokens of a
/// text (stand_ins/zero_worker).
class EchoEmbedFixture : public EmbedFixture {
 protected:
  EchoEmbedFixture(const std::string& name, std::uint32_t device_count);
  ~EchoEmbedFixture() override;
};

}  // namespace muster
