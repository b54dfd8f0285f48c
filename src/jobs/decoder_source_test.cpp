// Which names are of models that generate, and what is said of those that lead elsewhere.

#include "jobs/decoder_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster {
namespace {

class DecoderSource : public testing::Test {
 protected:
  DecoderSource()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("decoder_source." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~DecoderSource() override { std::filesystem::remove_all(folder_); }

  std::string place(const char* name) const { return (folder_ / name).string(); }

  // What is said of a file in the test's folder, without the folder's name.
  std::string told(const char* name, ErrorKind kind) const {
    const auto found = find_decoder_source(place(name));
    if (found) return "found";
    EXPECT_EQ(found.error().kind, kind) << name;
    return found.error().message.substr(folder_.string().size() + 1);
  }

  const std::filesystem::path folder_;
};

TEST_F(DecoderSource, AGgufFileIsTakenAsItIs) {
  std::ofstream(folder_ / "m.gguf") << "GGUF";
  EXPECT_EQ(*find_decoder_source(place("m.gguf")), folder_ / "m.gguf");
}

// Nobody writes the pipe: who opened it would wait for ever.
TEST_F(DecoderSource, WhatIsNoFileIsNamedForWhatItIs) {
  ASSERT_EQ(::mkfifo(place("p.gguf").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(place("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mknod(place("s.gguf").c_str(), S_IFSOCK | 0600, 0), 0);
  std::filesystem::create_directory(folder_ / "f.gguf");
  std::filesystem::create_symlink("/dev/null", folder_ / "d.gguf");
  std::ofstream(folder_ / "m.bin") << "x";
  EXPECT_EQ(told("p.gguf", ErrorKind::InvalidArgument), "p.gguf: a pipe, not a file");
  EXPECT_EQ(told("s.gguf", ErrorKind::InvalidArgument), "s.gguf: a socket, not a file");
  EXPECT_EQ(told("f.gguf", ErrorKind::InvalidArgument), "f.gguf: a folder, not a file");
  EXPECT_EQ(told("d.gguf", ErrorKind::InvalidArgument), "d.gguf: a device, not a file");
  EXPECT_EQ(told("none.gguf", ErrorKind::NotFound), "none.gguf: no such file");
  EXPECT_EQ(told("pipe", ErrorKind::InvalidArgument), "pipe: a pipe, not a model folder");
  EXPECT_EQ(told("m.bin", ErrorKind::InvalidArgument),
            "m.bin: a model is a .gguf file or a folder");
}

// Models that embed have a usual place at the hub; those that generate have none.
TEST_F(DecoderSource, AMissingModelIsNotBlamedOnWhoeverMakesEmbeddings) {
  const auto missing = find_decoder_source("No-Such-Decoder");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
  EXPECT_TRUE(
      missing.error().message.ends_with("fetch it by muster pull ORG/NAME, or give its .gguf file"))
      << missing.error().message;
}

TEST_F(DecoderSource, APipeInAModelsFolderKeepsNobodyWaiting) {
  std::filesystem::create_directory(folder_ / "model");
  ASSERT_EQ(::mkfifo(place("model/config.json").c_str(), 0600), 0);
  EXPECT_FALSE(names_decoder(place("model")));
  EXPECT_TRUE(names_decoder(place("m.gguf"))) << "its name says so";
}

}  // namespace
}  // namespace muster
