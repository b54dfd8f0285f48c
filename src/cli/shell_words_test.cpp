#include "cli/shell_words.h"

#include <gtest/gtest.h>

#include <vector>

#include "cli/ask_program.h"

namespace muster {
namespace {

TEST(JoinShellWords, QuotesOnlyWhatNeedsIt) {
  const std::vector<std::string> words{"muster", "embed", "a b.txt", "--out=x.npy",
                                       "",       "it's",  "$x"};
  EXPECT_EQ(join_shell_words(words), "muster embed 'a b.txt' --out=x.npy '' 'it'\\''s' '$x'");
}

TEST(JoinShellWords, IsReadBackByAShell) {
  const std::vector<std::string> words{"printf", "%s|", "a b",       "it's",
                                       "$HOME",  "*",   "new\nline", ""};
  const auto answer = ask_program({"sh", "-c", join_shell_words(words)}, std::chrono::seconds(30));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, "a b|it's|$HOME|*|new\nline||");
}

}  // namespace
}  // namespace muster
