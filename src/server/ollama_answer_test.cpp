// Replies as Ollama's clients read them, to the byte.
#include "server/ollama_answer.h"

#include <gtest/gtest.h>

#include <chrono>

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr double kTime =
    1'763'937'155;  // by coreutils' date -u -d @1763937155: 2025-11-23 22:32:35

// A line break within a text must not end the line, and characters stay as they are.
TEST(OllamaAnswer, APartOfAReplyIsOneLine) {
  EXPECT_EQ(OllamaAnswer("m:latest", false).line("a\n\"é", kTime),
            R"({"model":"m:latest","created_at":"2025-11-23T22:32:35Z","response":"a\n\"é",)"
            R"("done":false})"
            "\n");
  EXPECT_EQ(OllamaAnswer("m", true).line("a", kTime),
            R"({"model":"m","created_at":"2025-11-23T22:32:35Z",)"
            R"("message":{"role":"assistant","content":"a"},"done":false})"
            "\n");
}

TEST(OllamaAnswer, TheLastTellsWhyAndHowLong) {
  const OllamaEnd end{.reason = FinishReason::Length,
                      .usage = {.prompt_tokens = 33, .cached_tokens = 32, .reply_tokens = 2},
                      .total = milliseconds(1500),
                      .reply_time = milliseconds(250)};
  EXPECT_EQ(OllamaAnswer("m", false).last("ab", end, kTime),
            R"({"model":"m","created_at":"2025-11-23T22:32:35Z","response":"ab","done":true,)"
            R"("done_reason":"length","total_duration":1500000000,"load_duration":0,)"
            R"("prompt_eval_count":33,"eval_count":2,"eval_duration":250000000})");
}

TEST(OllamaAnswer, AReplyWithoutATokenHasNoTimeOfItsOwn) {
  const OllamaEnd end{.usage = {.prompt_tokens = 1}, .total = milliseconds(2)};
  EXPECT_EQ(OllamaAnswer("m", true).last("", end, kTime),
            R"({"model":"m","created_at":"2025-11-23T22:32:35Z",)"
            R"("message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",)"
            R"("total_duration":2000000,"load_duration":0,"prompt_eval_count":1,"eval_count":0})");
}

TEST(OllamaAnswer, ALoadedModelHasNothingToSay) {
  EXPECT_EQ(OllamaAnswer("m", false).loaded(kTime),
            R"({"model":"m","created_at":"2025-11-23T22:32:35Z","response":"","done":true,)"
            R"("done_reason":"load"})");
}

TEST(OllamaAnswer, AFaultIsALineOfItsOwn) {
  EXPECT_EQ(OllamaAnswer::error_line({.status = 503, .message = "No\n."}),
            "{\"error\":\"No\\n.\"}\n");
}

}  // namespace
}  // namespace muster
