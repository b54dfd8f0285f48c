#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace muster {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("file_test." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(FileTest, WhatIsWrittenAtomicallyIsReadBack) {
  ASSERT_TRUE(write_file_atomically(folder_ / "a", "hello"));
  EXPECT_EQ(*read_file(folder_ / "a"), "hello");
  EXPECT_EQ(MappedFile::open(folder_ / "a")->text(), "hello");
}

TEST_F(FileTest, AFailedAtomicWriteLeavesNothingBehind) {
  std::filesystem::create_directory(folder_ / "taken");
  std::filesystem::create_directory(folder_ / "taken" / "x");
  EXPECT_FALSE(write_file_atomically(folder_ / "taken", "hello"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().filename(), "taken");
  }
}

TEST_F(FileTest, AnEmptyFileMapsToAnEmptySpan) {
  ASSERT_TRUE(write_file_atomically(folder_ / "empty", ""));
  EXPECT_TRUE(MappedFile::open(folder_ / "empty")->bytes().empty());
}

TEST_F(FileTest, AMissingFileAndAFolderAreNamed) {
  EXPECT_EQ(read_file(folder_ / "no").error().kind, ErrorKind::NotFound);
  EXPECT_EQ(MappedFile::open(folder_).error().kind, ErrorKind::InvalidArgument);
}

TEST_F(FileTest, AFileOverTheLimitIsRefused) {
  ASSERT_TRUE(write_file_atomically(folder_ / "a", "hello"));
  EXPECT_EQ(read_file(folder_ / "a", 4).error().kind, ErrorKind::ResourceExhausted);
  EXPECT_TRUE(read_file(folder_ / "a", 5));
}

}  // namespace
}  // namespace muster
