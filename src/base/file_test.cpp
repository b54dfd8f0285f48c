#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

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

TEST_F(FileTest, ALinkStaysAndWhatItLeadsToIsReplaced) {
  ASSERT_TRUE(write_file_atomically(folder_ / "real", "old"));
  std::filesystem::create_symlink("real", folder_ / "link");
  ASSERT_TRUE(write_file_atomically(folder_ / "link", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(*read_file(folder_ / "real"), "new");
}

TEST_F(FileTest, ALinkToNothingAndACircleOfLinksAreRefused) {
  std::filesystem::create_symlink("nothing", folder_ / "dangling");
  std::filesystem::create_symlink("circle", folder_ / "circle");
  for (const auto* name : {"dangling", "circle"}) {
    EXPECT_FALSE(write_file_atomically(folder_ / name, "hello")) << name;
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / name)) << name;
  }
}

TEST_F(FileTest, APipeIsWrittenIntoAndNotReplaced) {
  const auto path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const UniqueFd both(::open(path.c_str(), O_RDWR | O_CLOEXEC));  // its own reader: nobody waits
  ASSERT_TRUE(write_file_atomically(path, "hello"));
  std::string text(5, ' ');
  ASSERT_EQ(::read(both.get(), text.data(), text.size()), 5);
  EXPECT_EQ(text, "hello");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST_F(FileTest, ManyMayWriteTheSameFileAtOnce) {
  constexpr int kWriters = 4;
  constexpr int kTimes = 50;
  std::atomic<int> failed = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&] {
      for (int time = 0; time < kTimes; ++time) {
        if (!write_file_atomically(folder_ / "a", "hello")) ++failed;
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(*read_file(folder_ / "a"), "hello");
}

TEST_F(FileTest, AnEmptyFileMapsToAnEmptySpan) {
  ASSERT_TRUE(write_file_atomically(folder_ / "empty", ""));
  EXPECT_TRUE(MappedFile::open(folder_ / "empty")->bytes().empty());
}

TEST_F(FileTest, AMissingFileAndAFolderAreNamed) {
  EXPECT_EQ(read_file(folder_ / "no").error().kind, ErrorKind::NotFound);
  EXPECT_EQ(MappedFile::open(folder_).error().kind, ErrorKind::InvalidArgument);
}

TEST_F(FileTest, AWrittenFileIsForThoseWhoAreNamed) {
  const auto path = folder_ / "a";
  ASSERT_TRUE(write_file_atomically(path, "hello", {.mode = 0600}));
  EXPECT_EQ(open_regular_file(path, O_RDONLY)->mode, 0600U);
  // With a group the umask takes nothing away.
  const auto mask = ::umask(0077);
  EXPECT_TRUE(write_file_atomically(path, "hello", {.mode = 0660, .group = ::getgid()}));
  EXPECT_TRUE(write_file_atomically(folder_ / "b", "hello"));
  ::umask(mask);
  EXPECT_EQ(open_regular_file(path, O_RDONLY)->mode, 0660U);
  EXPECT_EQ(open_regular_file(folder_ / "b", O_RDONLY)->mode, 0600U);
}

TEST_F(FileTest, OnlyARegularFileIsOpenedAsOne) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto socket = folder_ / "socket";
  ASSERT_EQ(::mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  // Nobody writes the pipe; opening it as others do would wait for that.
  const std::vector<std::pair<std::filesystem::path, std::string>> others{
      {pipe, "a pipe"}, {folder_, "a folder"}, {socket, "a socket"}, {"/dev/null", "a device"}};
  for (const auto& [path, kind] : others) {
    const auto wanted = path.string() + ": " + kind + ", not a file";
    EXPECT_EQ(kind_of_file(path), kind);
    for (const auto& error :
         {check_regular_file(path).error(), open_regular_file(path, O_RDONLY).error(),
          read_regular_file(path).error(), MappedFile::open(path).error()}) {
      EXPECT_EQ(error.message, wanted);
      EXPECT_EQ(error.kind, ErrorKind::InvalidArgument);
    }
  }
  EXPECT_EQ(check_regular_file(folder_ / "no").error().message,
            (folder_ / "no").string() + ": no such file");
  EXPECT_EQ(kind_of_file(folder_ / "no"), "nothing");
  EXPECT_EQ(open_regular_file(folder_ / "no", O_RDONLY).error().kind, ErrorKind::NotFound);
  const auto made = open_regular_file(folder_ / "new", O_RDWR | O_CREAT, 0600);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->mode, 0600U);
  EXPECT_TRUE(check_regular_file(folder_ / "new"));
  ASSERT_TRUE(write_all(made->fd.get(), "hello", "new"));
  EXPECT_EQ(*read_file(folder_ / "new"), "hello");
  EXPECT_EQ(*read_regular_file(folder_ / "new"), "hello");
  EXPECT_EQ(open_regular_file(folder_ / "new", O_RDONLY)->size, 5U);
}

// Nothing is read before the pipe is full, so that a write must find no room.
TEST_F(FileTest, WritesToAPipeThatDoesNotWait) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const std::string content(4 * static_cast<std::size_t>(::fcntl(out.get(), F_GETPIPE_SZ)), 'x');
  Status written = Done{};
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    written = write_all(out.get(), content, "pipe");
    out.reset();
    is_over = true;
  });
  const auto is_full = [&] {
    int held = 0;
    ::ioctl(in.get(), FIONREAD, &held);
    return held == ::fcntl(in.get(), F_GETPIPE_SZ);
  };
  while (!is_full() && !is_over) std::this_thread::yield();
  ::fcntl(in.get(), F_SETFL, 0);
  const auto read = read_all(in.get(), content.size(), "pipe");
  writer.join();
  EXPECT_TRUE(written) << written.error().message;
  ASSERT_TRUE(read);
  EXPECT_TRUE(*read == content);
}

TEST_F(FileTest, AFileOverTheLimitIsRefused) {
  ASSERT_TRUE(write_file_atomically(folder_ / "a", "hello"));
  EXPECT_EQ(read_file(folder_ / "a", 4).error().kind, ErrorKind::ResourceExhausted);
  EXPECT_TRUE(read_file(folder_ / "a", 5));
}

TEST_F(FileTest, OnlyFilesAreRemovedAsUnfinished) {
  const auto left = folder_ / "x.json.0123456789abcdef.tmp";
  const auto empty = folder_ / "x.json.0123456789abcde0.tmp";
  const auto full = folder_ / "x.json.0123456789abcde1.tmp";
  ASSERT_TRUE(write_file_atomically(left, "half"));
  std::filesystem::create_directory(empty);
  std::filesystem::create_directory(full);
  ASSERT_TRUE(write_file_atomically(full / "a", "whole"));
  const auto removed = remove_unfinished(folder_ / "x.json");
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(empty));
  EXPECT_TRUE(std::filesystem::exists(full / "a"));
}

TEST(UnfinishedName, IsThatOfAWriteThatWasKilled) {
  EXPECT_EQ(unfinished_name("a/x.json.0123456789abcdef.tmp"), "x.json");
  EXPECT_EQ(unfinished_name("x.0123456789abcdef.tmp"), "x");
  EXPECT_EQ(unfinished_name("x.json.0123456789abcde.tmp"), "") << "fifteen digits";
  EXPECT_EQ(unfinished_name("x.json.0123456789abcdeg.tmp"), "");
  EXPECT_EQ(unfinished_name("x.json.tmp"), "");
  EXPECT_EQ(unfinished_name("x.json"), "");
}

}  // namespace
}  // namespace muster
