#include "base/child_process.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

namespace muster {
namespace {

std::int64_t send_buffer(const UniqueFd& socket) {
  int size = 0;
  socklen_t length = sizeof size;
  EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &size, &length), 0);
  return size;
}

// The kernel doubles what it grants, for its own records.
TEST(ChildPipes, AnAnswerMayWaitInTheSocketAsFarAsTheKernelGrantsIt) {
  std::int64_t most = 0;
  std::ifstream("/proc/sys/net/core/wmem_max") >> most;
  if (most == 0) GTEST_SKIP() << "net.core.wmem_max is not shown here";
  const auto pipes = open_child_pipes("worker");
  ASSERT_TRUE(pipes);
  const auto usual = send_buffer(pipes->socket_here);
  const std::int64_t wanted = kSendBufferWanted;
  const auto expected = usual >= 2 * wanted ? usual : 2 * std::min(most, wanted);
  EXPECT_EQ(send_buffer(pipes->socket_there), expected);
}

}  // namespace
}  // namespace muster
