#include "cli/messages.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace muster
