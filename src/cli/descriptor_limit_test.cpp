#include "cli/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace muster {
namespace {

TEST(RaiseDescriptorLimit, GivesAllThatTheProcessMayHave) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit low = usual;
  low.rlim_cur = 64;  // more than a test has open
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  raise_descriptor_limit();
  rlimit raised{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, usual.rlim_max);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
}

}  // namespace
}  // namespace muster
