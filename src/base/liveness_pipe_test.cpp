#include "base/liveness_pipe.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

namespace muster {
namespace {

std::size_t count_descriptors(const std::filesystem::path& task) {
  const std::filesystem::directory_iterator fds(task / "fd");
  return static_cast<std::size_t>(std::distance(begin(fds), end(fds)));
}

// A child of its own, since the thread stays.
TEST(LivenessPipe, IsTheOneDescriptorOfAThreadAndEndsWithTheProcess) {
  int pipe[2] = {};
  int ready[2] = {};
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(pipe[0]);
    const char is_kept = keep_liveness_pipe(UniqueFd(pipe[1])) ? 1 : 0;
    (void)!::write(ready[1], &is_kept, 1);
    for (;;) ::pause();
  }
  ::close(pipe[1]);
  ::close(ready[1]);
  char is_kept = 0;
  ASSERT_EQ(::read(ready[0], &is_kept, 1), 1);
  pollfd end{pipe[0], POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0) << "it lives";

  const auto tasks = std::filesystem::path("/proc") / std::to_string(child) / "task";
  std::size_t keepers = 0;
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    if (task.path().filename() == std::to_string(child)) {
      EXPECT_NE(is_kept == 1, exists(task.path() / "fd" / std::to_string(pipe[1])))
          << "the process's own";
    } else if (count_descriptors(task.path()) == 1) {
      ++keepers;
      EXPECT_TRUE(is_symlink(task.path() / "fd" / std::to_string(pipe[1])));
    }
  }
#if defined(__SANITIZE_THREAD__)
  EXPECT_EQ(is_kept, 0);
#else
  EXPECT_EQ(is_kept, 1);
#endif
  EXPECT_EQ(keepers, is_kept == 1 ? 1U : 0U);

  ASSERT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_EQ(::poll(&end, 1, 20'000), 1);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

}  // namespace
}  // namespace muster
