#include "terminal/terminal_info.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>

#include "base/unique_fd.h"

namespace muster {
namespace {

// A terminal of 100 columns that no screen shows.
struct Terminal {
  Terminal() : master(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::grantpt(master.get());
    ::unlockpt(master.get());
    slave = UniqueFd(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY));
    const winsize size{.ws_row = 30, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(master.get(), TIOCSWINSZ, &size);
  }
  UniqueFd master;
  UniqueFd slave;
};

class TerminalInfoTest : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("COLUMNS"); }
};

TEST_F(TerminalInfoTest, ATerminalHasItsWidthOrThatOfTheVariable) {
  ::unsetenv("COLUMNS");
  const Terminal terminal;
  ASSERT_TRUE(terminal.slave.is_open());
  EXPECT_EQ(inspect_terminal(terminal.slave.get()).width, 100U);
  EXPECT_EQ(printed_width(terminal.slave.get()), 100U);
  ::setenv("COLUMNS", "60", 1);
  EXPECT_EQ(inspect_terminal(terminal.slave.get()).width, 60U);
  EXPECT_EQ(printed_width(terminal.slave.get()), 60U);
  for (const auto* none : {"", "0", "wide", "60x"}) {
    ::setenv("COLUMNS", none, 1);
    EXPECT_EQ(inspect_terminal(terminal.slave.get()).width, 100U) << none;
  }
}

TEST_F(TerminalInfoTest, WhatGoesToAProgramIsNeverCut) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  ::setenv("COLUMNS", "60", 1);
  EXPECT_EQ(printed_width(writer.get()), std::numeric_limits<std::size_t>::max());
  EXPECT_FALSE(inspect_terminal(writer.get()).is_terminal);
}

}  // namespace
}  // namespace muster
