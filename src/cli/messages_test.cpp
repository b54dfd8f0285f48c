#include "cli/messages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "base/unique_fd.h"

namespace muster {
namespace {

constexpr TerminalInfo kPlain{.is_terminal = true, .width = 80};
constexpr TerminalInfo kColoured{.is_terminal = true, .width = 80, .has_color = true};

TEST(MessageLine, BeginsWithTheNameOfTheProgram) {
  EXPECT_EQ(message_line(Tone::Notice, "a notice", kColoured), "muster: a notice\n");
  EXPECT_EQ(message_line(Tone::Warning, "be careful", kPlain), "muster: warning: be careful\n");
  EXPECT_EQ(message_line(Tone::Error, "no", kPlain), "muster: no\n");
}

TEST(MessageLine, ColoursOnlyWhatItBeginsWith) {
  EXPECT_EQ(message_line(Tone::Error, "no", kColoured), "\x1b[0;1;38;5;202mmuster:\x1b[0m no\n");
  EXPECT_EQ(message_line(Tone::Warning, "hm", kColoured),
            "\x1b[0;1;38;5;214mmuster: warning:\x1b[0m hm\n");
}

TEST(MessageLine, IsOneLineThatMovesNoCursor) {
  EXPECT_EQ(message_line(Tone::Error, "a\nb\x1b[2J", kPlain), "muster: a b [2J\n");
}

// As everything else on a terminal; a log and a pipe have a line for each.
TEST(MessageLine, IsBrokenBetweenWordsOnATerminalAlone) {
  const std::string sentence = "the worker said nothing for a while";
  EXPECT_EQ(message_line(Tone::Notice, sentence, {.is_terminal = true, .width = 24}),
            "muster: the worker said\n  nothing for a while\n");
  EXPECT_EQ(message_line(Tone::Warning, sentence, {.is_terminal = true, .width = 24}),
            "muster: warning: the\n  worker said nothing\n  for a while\n");
  EXPECT_EQ(message_line(Tone::Notice, sentence, {.is_terminal = false, .width = 24}),
            "muster: " + sentence + "\n");
  EXPECT_EQ(message_line(Tone::Notice, "no such file: a  b", {.is_terminal = true, .width = 80}),
            "muster: no such file: a  b\n")
      << "its name has two spaces";
}

// It ended a benchmark whose reader had left, with the points that were still to come.
TEST(Say, ALineThatCannotBeWrittenCostsNothingElse) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  const UniqueFd kept(::dup(STDERR_FILENO));
  ASSERT_TRUE(kept.is_open());
  ASSERT_EQ(::dup2(full.get(), STDERR_FILENO), STDERR_FILENO);
  EXPECT_NO_THROW(say(Tone::Notice, "point 1 of 2", ColorChoice::Never));
  EXPECT_NO_THROW(write_message("muster: point 2 of 2\n"));
  EXPECT_EQ(::dup2(kept.get(), STDERR_FILENO), STDERR_FILENO);
  std::clearerr(stderr);
}

}  // namespace
}  // namespace muster
