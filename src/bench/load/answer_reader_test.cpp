#include "bench/load/answer_reader.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

AnswerFacts read(AnswerReader& reader, std::string_view body) {
  reader.on_body(body, 1);
  return reader.finish();
}

TEST(ListAnswerReader, CountsItemsAndTokens) {
  const auto reader = list_answer_reader("data", 2);
  const auto facts =
      read(*reader, R"({"data":[{},{}],"usage":{"prompt_tokens":7,"total_tokens":9}})");
  EXPECT_FALSE(facts.problem) << *facts.problem;
  EXPECT_EQ(facts.input_tokens, 7);
  // Some servers only have the sum.
  EXPECT_EQ(read(*reader, R"({"data":[1,2],"usage":{"total_tokens":9}})").input_tokens, 9);
  EXPECT_FALSE(read(*reader, R"({"data":[1,2]})").input_tokens);
}

TEST(ListAnswerReader, SaysWhatIsWrong) {
  const auto reader = list_answer_reader("data", 2);
  EXPECT_EQ(read(*reader, "<html>").problem, "the answer is no JSON");
  EXPECT_EQ(read(*reader, "").problem, "the answer is no JSON");
  EXPECT_EQ(read(*reader, R"({"data":[1,2])").problem, "the answer is no JSON");
  EXPECT_EQ(read(*reader, R"({"results":[]})").problem, "the answer has no list \"data\"");
  EXPECT_EQ(read(*reader, R"([1])").problem, "the answer has no list \"data\"");
  EXPECT_EQ(read(*reader, R"({"data":[1]})").problem, "the answer has 1 items in \"data\", not 2");
  // And reads the next one as if nothing had been.
  EXPECT_FALSE(read(*reader, R"({"data":[1,2]})").problem);
}

std::string chat_event(const std::string& delta) {
  return R"(data: {"choices":[{"index":0,"delta":)" + delta + "}]}\n\n";
}

TEST(StreamAnswerReader, TimesThePiecesOfText) {
  const auto reader = stream_answer_reader(true);
  reader->on_body(chat_event(R"({"role":"assistant","content":""})"), 1);
  reader->on_body(chat_event(R"({"content":"He"})"), 2);
  reader->on_body(chat_event(R"({"reasoning_content":"hm"})") + chat_event(R"({"content":"llo"})"),
                  3);
  reader->on_body(
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":4}}\n\n", 4);
  reader->on_body("data: [DONE]\n\n", 5);
  const auto facts = reader->finish();
  EXPECT_FALSE(facts.problem) << *facts.problem;
  EXPECT_EQ(facts.token_times, (std::vector<double>{2, 3, 3}));
  EXPECT_EQ(facts.text, "Hehmllo");
  EXPECT_EQ(facts.input_tokens, 5);
  EXPECT_EQ(facts.output_tokens, 4);
}

TEST(StreamAnswerReader, ReadsTextCompletions) {
  const auto reader = stream_answer_reader(false);
  const auto facts = read(*reader, "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n");
  EXPECT_FALSE(facts.problem);
  EXPECT_EQ(facts.token_times.size(), 1U);
  EXPECT_EQ(facts.text, "");  // not kept
}

TEST(StreamAnswerReader, SaysWhatIsWrong) {
  const auto reader = stream_answer_reader(false);
  EXPECT_EQ(read(*reader, "data: {nonsense\n\n").problem,
            "the stream has an event that is no JSON");
  EXPECT_EQ(read(*reader, chat_event(R"({"content":"a"})")).problem,
            "the stream ended before its [DONE]");
  EXPECT_EQ(read(*reader, "data: [DONE]\n\n").problem, "the stream has no text");
  EXPECT_EQ(read(*reader, "data: {\"error\":{\"message\":\"full\"}}\n\n").problem,
            "the stream reports an error: {\"message\":\"full\"}");
  reader->on_body(chat_event(R"({"content":"half"})"), 1);
  reader->drop();
  const auto next = read(*reader, chat_event(R"({"content":"b"})") + "data: [DONE]\n\n");
  EXPECT_FALSE(next.problem);
  EXPECT_EQ(next.token_times.size(), 1U);
}

TEST(StreamAnswerReader, KeepsTheFirstThingThatIsWrong) {
  const auto reader = stream_answer_reader(false);
  reader->on_body("data: {nonsense\n\n", 1);
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 17; ++i) reader->on_body(piece, 2);  // longer than an event may be
  EXPECT_EQ(reader->finish().problem, "the stream has an event that is no JSON");
}

// An event takes 57 bytes: the second is one too many, and nothing behind it is kept.
TEST(StreamAnswerReader, ReadsNoStreamWithoutAnEnd) {
  const auto reader = stream_answer_reader(true, 100);
  const auto event = chat_event(R"({"content":"a"})");
  ASSERT_EQ(event.size(), 57U);
  for (int i = 0; i < 3; ++i) reader->on_body(event, i);
  const auto facts = reader->finish();
  EXPECT_EQ(facts.problem, "the stream is too long to be read");
  EXPECT_EQ(facts.text, "a");
  EXPECT_EQ(read(*reader, event).problem, "the stream ended before its [DONE]");  // the next one
}

TEST(StreamAnswerReader, ShowsTheBeginningOfALongError) {
  const auto reader = stream_answer_reader(false);
  const auto problem =
      read(*reader, "data: {\"error\":\"" + std::string(100'000, 'x') + "\"}\n\n").problem;
  ASSERT_TRUE(problem);
  // Of the 500 bytes that are shown one is the quote.
  EXPECT_EQ(*problem, "the stream reports an error: \"" + std::string(499, 'x') + "…");
}

TEST(AnyAnswerReader, TakesAnything) {
  const auto reader = any_answer_reader();
  EXPECT_FALSE(read(*reader, "<html>").problem);
}

}  // namespace
}  // namespace muster
