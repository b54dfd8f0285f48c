#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "integration/program.h"

namespace muster {

/// Runs of `muster embed` with the tiny model and the real engine, in a folder of their own.
class EmbeddingRuns {
 public:
  explicit EmbeddingRuns(const std::string& name)
      : folder_(std::filesystem::path(testing::TempDir()) /
                (name + "." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~EmbeddingRuns() { std::filesystem::remove_all(folder_); }
  EmbeddingRuns(const EmbeddingRuns&) = delete;
  EmbeddingRuns& operator=(const EmbeddingRuns&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

  static std::vector<std::string> texts(int count) {
    std::vector<std::string> result;
    for (int i = 0; i < count; ++i) {
      std::string text = "text " + std::to_string(i * 7919LL % 100'003);
      for (int j = 0; j < i % 17; ++j) text += " the";
      result.push_back(std::move(text));
    }
    return result;
  }

  void write_input(const std::string& name, const std::vector<std::string>& lines) const {
    std::ofstream file(folder_ / name);
    for (const auto& line : lines) file << line << "\n";
  }

  Program start(const std::string& input, const std::string& out,
                const std::vector<std::string>& more) const {
    std::vector<std::string> words{std::string(MUSTER_BINARY_DIR) + "/bin/muster",
                                   "embed",
                                   std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny",
                                   (folder_ / input).string(),
                                   "-o",
                                   (folder_ / out).string(),
                                   "--cache-dir",
                                   (folder_ / "cache").string()};
    words.insert(words.end(), more.begin(), more.end());
    return {std::move(words), (folder_ / "log").string()};
  }

  std::string rows_of(const std::string& out) const { return *read_file(folder_ / out); }
  std::string log() const { return *read_file(folder_ / "log"); }

 private:
  const std::filesystem::path folder_;
};

}  // namespace muster
