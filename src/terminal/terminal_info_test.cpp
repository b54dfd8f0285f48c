#include "terminal/terminal_info.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

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
  void SetUp() override { forget(); }
  void TearDown() override { forget(); }

  static void forget() {
    for (const auto* name :
         {"COLUMNS", "TERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LC_ALL", "LC_CTYPE"}) {
      ::unsetenv(name);
    }
  }

  static bool has_color(int fd, ColorChoice choice = ColorChoice::Auto) {
    return inspect_terminal(fd, choice).has_color;
  }
};

TEST_F(TerminalInfoTest, ATerminalHasItsWidthOrThatOfTheVariable) {
  const Terminal terminal;
  ASSERT_TRUE(terminal.slave.is_open());
  EXPECT_EQ(inspect_terminal(terminal.slave.get()).width, 100U);
  ::setenv("COLUMNS", "60", 1);
  EXPECT_EQ(inspect_terminal(terminal.slave.get()).width, 60U);
  for (const auto* none : {"", "0", "wide", "60x"}) {
    ::setenv("COLUMNS", none, 1);
    EXPECT_EQ(inspect_terminal(terminal.slave.get()).width, 100U) << none;
  }
}

// A pipe that nobody reads.
struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  UniqueFd reader;
  UniqueFd writer;
};

TEST_F(TerminalInfoTest, WhatGoesToAProgramIsCutOnlyByTheVariable) {
  const Pipe pipe;
  EXPECT_FALSE(inspect_terminal(pipe.writer.get()).is_terminal);
  EXPECT_EQ(inspect_terminal(pipe.writer.get()).width, kUnboundedWidth);
  ::setenv("COLUMNS", "60", 1);
  EXPECT_EQ(inspect_terminal(pipe.writer.get()).width, 60U);
}

TEST_F(TerminalInfoTest, OnlyATerminalThatMovesItsCursorIsRedrawnOrColoured) {
  const Terminal terminal;
  for (const auto* term : {"", "dumb"}) {
    ::setenv("TERM", term, 1);
    EXPECT_FALSE(inspect_terminal(terminal.slave.get()).can_redraw) << term;
    EXPECT_FALSE(has_color(terminal.slave.get())) << term;
  }
  ::setenv("TERM", "xterm-256color", 1);
  EXPECT_TRUE(inspect_terminal(terminal.slave.get()).can_redraw);
  EXPECT_TRUE(has_color(terminal.slave.get()));
  const Pipe pipe;
  EXPECT_FALSE(inspect_terminal(pipe.writer.get()).can_redraw);
  EXPECT_FALSE(has_color(pipe.writer.get()));
}

TEST_F(TerminalInfoTest, ColoursFollowTheUsualVariables) {
  const Terminal terminal;
  const Pipe pipe;
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "", 1);  // empty counts as not set
  EXPECT_TRUE(has_color(terminal.slave.get()));
  ::setenv("CLICOLOR", "0", 1);
  EXPECT_FALSE(has_color(terminal.slave.get()));
  ::setenv("CLICOLOR_FORCE", "0", 1);
  EXPECT_FALSE(has_color(terminal.slave.get()));
  ::setenv("CLICOLOR_FORCE", "1", 1);
  EXPECT_TRUE(has_color(terminal.slave.get()));
  EXPECT_TRUE(has_color(pipe.writer.get()));
  ::setenv("NO_COLOR", "0", 1);  // any value counts
  EXPECT_FALSE(has_color(terminal.slave.get()));
  EXPECT_FALSE(has_color(pipe.writer.get()));
}

TEST_F(TerminalInfoTest, WhatIsAskedForWinsOverEveryVariable) {
  const Pipe pipe;
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_TRUE(has_color(pipe.writer.get(), ColorChoice::Always));
  ::unsetenv("NO_COLOR");
  ::setenv("CLICOLOR_FORCE", "1", 1);
  EXPECT_FALSE(has_color(pipe.writer.get(), ColorChoice::Never));
}

TEST(ParseColorChoice, KnowsThreeWords) {
  EXPECT_EQ(parse_color_choice("auto"), ColorChoice::Auto);
  EXPECT_EQ(parse_color_choice("always"), ColorChoice::Always);
  EXPECT_EQ(parse_color_choice("never"), ColorChoice::Never);
  EXPECT_EQ(parse_color_choice("yes"), std::nullopt);
}

}  // namespace
}  // namespace muster
