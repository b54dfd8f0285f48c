#include "cli/ask_program.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr auto kLong = std::chrono::seconds(30);

TEST(AskProgram, GivesStandardOutput) {
  const auto answer = ask_program({"sh", "-c", "echo one; echo two; echo no >&2"}, kLong);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, "one\ntwo\n");
}

TEST(AskProgram, TellsHowItFailed) {
  const auto failed = ask_program({"sh", "-c", "echo half; exit 3"}, kLong);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(failed.error().message, "sh answered with an error: exit code 3");

  const auto missing = ask_program({"no-such-program-here"}, kLong);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
}

TEST(AskProgram, DoesNotWaitForeverNorReadForever) {
  // The first never ends its output, the second ends it and stays.
  for (const auto* script : {"exec cat < /dev/zero", "exec >&-; kill -STOP $$"}) {
    SCOPED_TRACE(script);
    EXPECT_FALSE(ask_program({"sh", "-c", script}, std::chrono::milliseconds(50)));
  }
}

}  // namespace
}  // namespace muster
