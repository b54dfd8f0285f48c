#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"

namespace muster {

/// A test with a folder of its own, gone after it.
class FolderTest : public testing::Test {
 protected:
  FolderTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("dataset_test." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) const {
    const auto path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;  // nobody waits for this disk
    return path;
  }

  std::string read(const std::string& name) const { return *read_file(folder_ / name); }

  std::filesystem::path folder_;
};

}  // namespace muster
