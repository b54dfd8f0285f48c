// Replies as OpenAI's clients read them, to the byte.
#include "server/generation_answer.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr GenerationUsage kUsage{.prompt_tokens = 33, .cached_tokens = 32, .reply_tokens = 2};

TEST(GenerationAnswer, AConversationIsAnsweredWhole) {
  const GenerationAnswer answer(
      GenerationAnswer::Head{.request_id = "r", .model = "m", .created = 7, .is_chat = true});
  EXPECT_EQ(answer.whole("a", FinishReason::Length, kUsage),
            R"({"id":"chatcmpl-r","object":"chat.completion","created":7,"model":"m",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":null},)"
            R"("logprobs":null,"finish_reason":"length"}],)"
            R"("usage":{"prompt_tokens":33,"completion_tokens":2,"total_tokens":35,)"
            R"("prompt_tokens_details":{"cached_tokens":32}}})");
}

// A line break within a text must not end the event, and characters stay as they are.
TEST(GenerationAnswer, EachPartOfAConversationIsOneEvent) {
  const GenerationAnswer answer(GenerationAnswer::Head{
      .request_id = "r", .model = "m", .created = 7, .is_chat = true, .includes_usage = true});
  const std::string begin =
      R"(data: {"id":"chatcmpl-r","object":"chat.completion.chunk","created":7,"model":"m",)";
  EXPECT_EQ(answer.first_event(),
            begin + R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},)"
                    R"("logprobs":null,"finish_reason":null}],"usage":null})"
                    "\n\n");
  EXPECT_EQ(answer.text_event("a\r\n\"é"),
            begin + R"("choices":[{"index":0,"delta":{"content":"a\r\n\"é"},)"
                    R"("logprobs":null,"finish_reason":null}],"usage":null})"
                    "\n\n");
  EXPECT_EQ(answer.last_events(FinishReason::Stop, kUsage),
            begin +
                R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],)"
                R"("usage":null})"
                "\n\n" +
                begin +
                R"("choices":[],"usage":{"prompt_tokens":33,"completion_tokens":2,)"
                R"("total_tokens":35,"prompt_tokens_details":{"cached_tokens":32}}})"
                "\n\ndata: [DONE]\n\n");
}

TEST(GenerationAnswer, AContinuationHasTextsAndNoUsageThatIsNotAskedFor) {
  const GenerationAnswer answer(
      GenerationAnswer::Head{.request_id = "r", .model = "m", .created = 7});
  EXPECT_EQ(answer.first_event(), "");
  EXPECT_EQ(answer.text_event("a"),
            R"(data: {"id":"cmpl-r","object":"text_completion","created":7,"model":"m",)"
            R"("choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}]})"
            "\n\n");
}

}  // namespace
}  // namespace muster
