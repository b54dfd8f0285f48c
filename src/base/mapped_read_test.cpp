#include "base/mapped_read.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace muster {
namespace {

class MappedRead : public testing::Test {
 protected:
  MappedRead()
      : path_(std::filesystem::path(testing::TempDir()) /
              ("mapped_read." + std::to_string(::getpid()))) {
    std::ofstream(path_) << std::string(2 * page_, 'x');
  }
  ~MappedRead() override { std::filesystem::remove(path_); }

  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::filesystem::path path_;
};

std::byte read_at(const MappedFile& file, std::size_t at) {
  return *(static_cast<const volatile std::byte*>(file.bytes().data()) + at);
}

TEST_F(MappedRead, ComesToItsEndWhereAllIsThere) {
  const auto file = *MappedFile::open(path_);
  std::byte last{};
  EXPECT_TRUE(read_mapped(file.bytes(), [&] { last = read_at(file, 2 * page_ - 1); }));
  EXPECT_EQ(last, std::byte{'x'});
}

TEST_F(MappedRead, EndsWithTheReadOfAPageThatIsGone) {
  const auto file = *MappedFile::open(path_);
  std::filesystem::resize_file(path_, page_);
  int steps = 0;
  // Again and again: the handler has to be there the second time, too.
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(read_mapped(file.bytes(), [&] {
      ++steps;
      read_at(file, page_);
      steps += 100;
    }));
  }
  EXPECT_EQ(steps, 3);
  EXPECT_TRUE(read_mapped(file.bytes(), [&] { read_at(file, page_ - 1); }));
}

TEST_F(MappedRead, EndsTheScopeWhoseMappingItIs) {
  const auto file = *MappedFile::open(path_);
  const auto other = *MappedFile::open(path_);
  std::filesystem::resize_file(path_, page_);
  bool inner_ended = false;
  bool went_on = false;
  EXPECT_FALSE(read_mapped(file.bytes(), [&] {
    inner_ended = !read_mapped(other.bytes(), [&] { read_at(other, page_); });
    static_cast<void>(read_mapped(other.bytes(), [&] { read_at(file, page_); }));
    went_on = true;
  }));
  EXPECT_TRUE(inner_ended);
  EXPECT_FALSE(went_on);
}

TEST_F(MappedRead, AScopeIsItsThreadsOwn) {
  const auto file = *MappedFile::open(path_);
  std::filesystem::resize_file(path_, page_);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        EXPECT_FALSE(read_mapped(file.bytes(), [&] { read_at(file, page_); }));
      }
    });
  }
}

// What no scope is for ends the process as before: outside of a scope, in another mapping, and a
// signal that somebody has sent.
TEST_F(MappedRead, PassesOnWhatIsNotItsOwn) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto dies_of_bus_error = [](int status) {
    return (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) ||
           (WIFEXITED(status) && WEXITSTATUS(status) != 0);  // ASan has a handler of its own
  };
  const auto file = *MappedFile::open(path_);
  const auto other = *MappedFile::open(path_);
  std::filesystem::resize_file(path_, page_);
  ASSERT_FALSE(read_mapped(file.bytes(), [&] { read_at(file, page_); }));
  EXPECT_EXIT(read_at(file, page_), dies_of_bus_error, "");
  EXPECT_EXIT(static_cast<void>(read_mapped(file.bytes(), [&] { read_at(other, page_); })),
              dies_of_bus_error, "");
  EXPECT_EXIT(static_cast<void>(read_mapped(file.bytes(), [] { ::raise(SIGBUS); })),
              dies_of_bus_error, "");
}

volatile std::sig_atomic_t handled = 0;

TEST_F(MappedRead, PassesOnToTheHandlerBeforeIt) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // In a process of its own, whose first scope opens behind this handler.
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, [](int) { handled = handled + 1; });
        static_cast<void>(read_mapped({}, [] { ::raise(SIGBUS); }));
        ::_exit(handled == 1 ? 7 : 8);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace muster
