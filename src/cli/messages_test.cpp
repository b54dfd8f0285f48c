#include "cli/messages.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(MessageLine, BeginsWithTheNameOfTheProgram) {
  EXPECT_EQ(message_line(Tone::Notice, "a notice", true), "muster: a notice\n");
  EXPECT_EQ(message_line(Tone::Warning, "be careful", false), "muster: warning: be careful\n");
  EXPECT_EQ(message_line(Tone::Error, "no", false), "muster: no\n");
}

TEST(MessageLine, ColoursOnlyWhatItBeginsWith) {
  EXPECT_EQ(message_line(Tone::Error, "no", true), "\x1b[0;1;38;5;202mmuster:\x1b[0m no\n");
  EXPECT_EQ(message_line(Tone::Warning, "hm", true),
            "\x1b[0;1;38;5;214mmuster: warning:\x1b[0m hm\n");
}

TEST(MessageLine, IsOneLineThatMovesNoCursor) {
  EXPECT_EQ(message_line(Tone::Error, "a\nb\x1b[2J", false), "muster: a b [2J\n");
}

}  // namespace
}  // namespace muster
