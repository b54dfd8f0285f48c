#include "cli/help_examples.h"

#include <gtest/gtest.h>

#include "terminal/terminal_info.h"

namespace muster {
namespace {

TEST(ExamplesText, LeavesAloneWhatFits) {
  constexpr std::string_view kText =
      "  muster embed a \\\n"
      "      --devices 2xcpu\n"
      "  muster top   # and look\n";
  EXPECT_EQ(examples_text(kText, 40), kText);
  EXPECT_EQ(examples_text(kText, kUnboundedWidth), kText);
}

TEST(ExamplesText, BreaksACommandBetweenTheWordsOfTheShell) {
  EXPECT_EQ(examples_text("  muster search x.npy --top 3 \"where are the keys?\" | head\n", 32),
            "  muster search x.npy --top 3 \\\n"
            "      \"where are the keys?\" | \\\n"
            "      head\n");
}

TEST(ExamplesText, JoinsACommandBeforeItIsBrokenAnew) {
  EXPECT_EQ(examples_text("  muster embed ./my-model corpus.jsonl -o corpus.npy \\\n"
                          "      --field body --devices 2xcpu\n",
                          40),
            "  muster embed ./my-model corpus.jsonl \\\n"
            "      -o corpus.npy --field body \\\n"
            "      --devices 2xcpu\n");
}

TEST(ExamplesText, PutsACommentAboveACommandThatIsTooWide) {
  EXPECT_EQ(examples_text("  muster ctl drain cuda:1  # its work goes to the others\n", 30),
            "  # its work goes to the\n"
            "    others\n"
            "  muster ctl drain cuda:1\n");
}

TEST(ExamplesText, WrapsParagraphs) {
  EXPECT_EQ(examples_text("  muster top\n\nOne two\nthree four.\n", 12),
            "  muster top\n\nOne two\nthree four.\n");
  EXPECT_EQ(examples_text("One two\nthree.\n\nFour.\n", kUnboundedWidth),
            "One two three.\n\nFour.\n");
}

}  // namespace
}  // namespace muster
