#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "hw/device_sampler.h"

namespace muster {

/// A folder for one test that stands for "/", removed with it.
class TestTree {
 public:
  TestTree() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-tree-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~TestTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TestTree(const TestTree&) = delete;
  TestTree& operator=(const TestTree&) = delete;

  const std::filesystem::path& root() const { return root_; }

  /// Writes in place, so that a file that is open elsewhere shows the new content.
  void write(const std::filesystem::path& path, std::string_view content) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary | std::ios::trunc) << content;
  }

 private:
  std::filesystem::path root_;
};

/// Remembers the name of the last call and counts them.
class CountingWatch final : public CallWatch {
 public:
  void enter(const char* function, TimePoint /*at*/) override {
    last = function;
    ++entered;
  }
  void leave(const char*, std::int32_t, Duration) override { ++left; }

  std::string last;
  int entered = 0;
  int left = 0;
};

inline TierSet all_tiers() { return TierSet().set(); }

}  // namespace muster
