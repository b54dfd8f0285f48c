// Replies as OpenAI's clients read them, to the byte.
#include "server/generation_answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

constexpr GenerationUsage kUsage{.prompt_tokens = 33, .cached_tokens = 32, .reply_tokens = 2};

std::string whole_of(const GenerationAnswer& answer, const std::vector<AnswerChoice>& choices) {
  auto body = answer.whole_begin();
  for (const auto& choice : choices) answer.append_choice(choice, FinishReason::Length, body);
  return body + answer.whole_end(kUsage);
}

TEST(GenerationAnswer, AConversationIsAnsweredWhole) {
  const GenerationAnswer answer(
      GenerationAnswer::Head{.request_id = "r", .model = "m", .created = 7, .is_chat = true});
  EXPECT_EQ(whole_of(answer, {{.index = 0, .text = "a"}}),
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
  EXPECT_EQ(answer.first_events(1),
            begin + R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},)"
                    R"("logprobs":null,"finish_reason":null}],"usage":null})"
                    "\n\n");
  EXPECT_EQ(answer.text_event({.text = "a\r\n\"é"}),
            begin + R"("choices":[{"index":0,"delta":{"content":"a\r\n\"é"},)"
                    R"("logprobs":null,"finish_reason":null}],"usage":null})"
                    "\n\n");
  EXPECT_EQ(answer.finish_event(0, FinishReason::Stop) + answer.last_events(kUsage),
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
  EXPECT_EQ(answer.first_events(1), "");
  EXPECT_EQ(answer.text_event({.text = "a"}),
            R"(data: {"id":"cmpl-r","object":"text_completion","created":7,"model":"m",)"
            R"("choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}]})"
            "\n\n");
}

TEST(GenerationAnswer, ChoicesStandSideBySideAndEachPartNamesItsOwn) {
  const GenerationAnswer answer(
      GenerationAnswer::Head{.request_id = "r", .model = "m", .created = 7});
  const std::string begin = R"({"id":"cmpl-r","object":"text_completion","created":7,"model":"m",)";
  EXPECT_EQ(
      whole_of(answer, {{.index = 0, .text = "a"}, {.index = 1, .text = "}", .logprobs = "{}"}}),
      begin + R"("choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":"length"},)"
              R"({"index":1,"text":"}","logprobs":{},"finish_reason":"length"}],)"
              R"("usage":{"prompt_tokens":33,"completion_tokens":2,"total_tokens":35,)"
              R"("prompt_tokens_details":{"cached_tokens":32}}})");
  EXPECT_EQ(answer.text_event({.index = 1, .text = "b", .logprobs = R"({"tokens":[]})"}),
            "data: " + begin +
                R"("choices":[{"index":1,"text":"b","logprobs":{"tokens":[]},)"
                R"("finish_reason":null}]})"
                "\n\n");
  EXPECT_EQ(answer.finish_event(1, FinishReason::Length),
            "data: " + begin +
                R"("choices":[{"index":1,"text":"","logprobs":null,"finish_reason":"length"}]})"
                "\n\n");
  EXPECT_EQ(answer.last_events(kUsage), "data: [DONE]\n\n");
  const GenerationAnswer chat(
      GenerationAnswer::Head{.request_id = "r", .model = "m", .created = 7, .is_chat = true});
  const auto first = chat.first_events(2);
  EXPECT_NE(first.find(R"("choices":[{"index":0,"delta":{"role":"assistant","content":""})"),
            std::string::npos);
  EXPECT_NE(first.find(R"("choices":[{"index":1,"delta":{"role":"assistant","content":""})"),
            std::string::npos);
}

}  // namespace
}  // namespace muster
