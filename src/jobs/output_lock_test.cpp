#include "jobs/output_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace muster {
namespace {

class OutputLockTest : public testing::Test {
 protected:
  OutputLockTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("output_lock." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~OutputLockTest() override { std::filesystem::remove_all(folder_); }

  Result<OutputLock> take() const { return OutputLock::take(folder_ / "x.npy.lock", "x.npy"); }

  const std::filesystem::path folder_;
};

TEST_F(OutputLockTest, TheSecondIsRefusedByTheFirstsProcess) {
  {
    const auto first = take();
    ASSERT_TRUE(first) << first.error().message;
    const auto second = take();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::Unavailable);
    EXPECT_EQ(second.error().message, "x.npy: another run is writing it (process " +
                                          std::to_string(::getpid()) +
                                          "): wait for its end, or name another file with -o");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "the lock is gone with its run";
  EXPECT_TRUE(take());
}

TEST_F(OutputLockTest, WhoOnlyReadsIsToldOfARunThatLives) {
  const auto look = [this] { return OutputLock::check_free(folder_ / "x.npy.lock", "x.npy"); };
  EXPECT_TRUE(look()) << "no run was ever here";
  {
    const auto lock = take();
    ASSERT_TRUE(lock);
    const auto refused = look();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable);
    EXPECT_EQ(refused.error().message, "x.npy: a run is still writing it (process " +
                                           std::to_string(::getpid()) + "): wait for its end");
  }
  ASSERT_TRUE(write_file_atomically(folder_ / "x.npy.lock", "4711\n"));  // a killed run's
  EXPECT_TRUE(look());
  EXPECT_EQ(*read_file(folder_ / "x.npy.lock"), "4711\n");
}

TEST_F(OutputLockTest, TheKernelLetsGoOfWhatTheDeadHeld) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = take();
    (void)!::write(ends[1], lock ? "y" : "n", 1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ends[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_FALSE(take());
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "x.npy.lock"));
  EXPECT_TRUE(take());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(OutputLockTest, AFileOfOthersStaysAsItIs) {
  const auto place = folder_ / "x.npy.lock";
  for (const std::string content : {"{\"name\": \"yarn\"}\n", "4711 and more\n", "\n"}) {
    SCOPED_TRACE(content);
    ASSERT_TRUE(write_file_atomically(place, content));
    const auto lock = take();
    ASSERT_FALSE(lock);
    EXPECT_EQ(lock.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(lock.error().message, place.string() +
                                        ": is there and no lock of muster's: remove "
                                        "it, or name another output with -o");
    EXPECT_EQ(*read_file(place), content);
  }
  ASSERT_TRUE(write_file_atomically(place, std::string(100'000, '7')));
  EXPECT_FALSE(take());
  EXPECT_EQ(std::filesystem::file_size(place), 100'000U);
  for (const std::string left : {"", "4711\n", "47"}) {
    ASSERT_TRUE(write_file_atomically(place, left));
    const auto lock = take();
    ASSERT_TRUE(lock) << lock.error().message;
    EXPECT_EQ(*read_file(place), std::to_string(::getpid()) + "\n");
  }
}

TEST_F(OutputLockTest, NoLinkIsFollowed) {
  for (const char* target : {"precious", "none"}) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(write_file_atomically(folder_ / "precious", ""));
    std::filesystem::create_symlink(target, folder_ / "x.npy.lock");
    const auto lock = take();
    ASSERT_FALSE(lock);
    EXPECT_EQ(lock.error().kind, ErrorKind::InvalidArgument);
    EXPECT_NE(lock.error().message.find("a link"), std::string::npos) << lock.error().message;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
    std::filesystem::remove(folder_ / "x.npy.lock");
  }
}

// Each removes the file when it is done, so all meet in the moments around that.
TEST_F(OutputLockTest, NeverTwoAtATime) {
  std::atomic<int> holders = 0;
  std::atomic<int> taken = 0;
  std::atomic<bool> were_two = false;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 300; ++round) {
          const auto lock = take();
          if (!lock) continue;
          if (++holders != 1) were_two = true;
          ++taken;
          --holders;
        }
      });
    }
  }
  EXPECT_FALSE(were_two);
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace muster
