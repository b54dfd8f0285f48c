#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

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
  EmbedProgress last_;
  std::string notices_;
};

}  // namespace muster
