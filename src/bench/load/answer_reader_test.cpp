#include "bench/load/answer_reader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace muster {
namespace {

AnswerFacts read(AnswerReader& reader, std::string_view body) {
  reader.on_body(body, 1);
  return reader.finish();
}

// Two vectors with these members behind the list.
std::string two_vectors(const std::string& rest = "") {
  return R"({"data":[{"index":0,"embedding":[0.5]},{"index":1,"embedding":[0.5]}])" + rest + "}";
}

TEST(ListAnswerReader, CountsItemsAndTokens) {
  const auto reader = list_answer_reader(AnswerList::Vectors, 2);
  const auto facts = read(*reader, two_vectors(R"(,"usage":{"prompt_tokens":7,"total_tokens":9})"));
  EXPECT_FALSE(facts.problem) << *facts.problem;
  EXPECT_EQ(facts.input_tokens, 7);
  // Some servers only have the sum.
  EXPECT_EQ(read(*reader, two_vectors(R"(,"usage":{"total_tokens":9})")).input_tokens, 9);
  EXPECT_FALSE(read(*reader, two_vectors()).input_tokens);
}

TEST(ListAnswerReader, TakesNoCountThatCannotBeOne) {
  const auto reader = list_answer_reader(AnswerList::Vectors, 2);
  const auto tokens = [&](const std::string& count) {
    const auto facts = read(*reader, two_vectors(R"(,"usage":{"prompt_tokens":)" + count + "}"));
    EXPECT_FALSE(facts.problem) << *facts.problem;
    return facts.input_tokens;
  };
  EXPECT_EQ(tokens("1000000000"), 1'000'000'000);
  for (const char* count : {"1000000001", "9000000000000000000", "18000000000000000000", "-1",
                            "2.5", "1e300", "\"7\"", "null"}) {
    EXPECT_FALSE(tokens(count)) << count;
  }
}

TEST(ListAnswerReader, WantsAVectorForEachText) {
  const auto reader = list_answer_reader(AnswerList::Vectors, 2);
  const auto problem = [&](const std::string& first, const std::string& second) {
    return read(*reader, R"({"data":[)" + first + "," + second + "]}").problem;
  };
  const std::string one = R"({"index":1,"embedding":[0.5,1]})";
  EXPECT_FALSE(problem(one, R"({"index":0,"embedding":[-1e-3,7]})")) << "in any order";
  EXPECT_FALSE(problem(one, R"({"index":0,"embedding":"AAAAPw=="})")) << "base64";
  EXPECT_FALSE(problem(one, R"({"index":0,"embedding":[[0.5],[1]]})")) << "a vector a token";
  const std::string no_vector = "the answer's item 1 in \"data\" has no embedding";
  for (const char* embedding : {"[]", "[0.5,null]", "null", "7", "\"\"", "{}"}) {
    EXPECT_EQ(problem(one, std::string(R"({"index":0,"embedding":)") + embedding + "}"), no_vector)
        << embedding;
  }
  EXPECT_EQ(problem(one, R"({"index":0})"), no_vector);
  const std::string no_index = "the answer's item 1 in \"data\" has no index of its own below 2";
  for (const char* index : {"1", "2", "-1", "0.5", "null", "\"0\""}) {
    EXPECT_EQ(problem(one, std::string(R"({"embedding":[1],"index":)") + index + "}"), no_index)
        << index;
  }
  EXPECT_EQ(problem(one, R"({"embedding":[1]})"), no_index);
  EXPECT_EQ(problem(one, "7"), no_index);
  EXPECT_FALSE(
      read(*list_answer_reader(AnswerList::Vectors, 1), R"({"data":[{"embedding":[1]}]})").problem)
      << "one alone needs no index";
}

TEST(ListAnswerReader, WantsAScoreForEachDocument) {
  const auto reader = list_answer_reader(AnswerList::Scores, 2);
  const auto problem = [&](const std::string& second) {
    return read(*reader, R"({"results":[{"index":1,"relevance_score":0.9},)" + second + "]}")
        .problem;
  };
  EXPECT_FALSE(problem(R"({"index":0,"relevance_score":-3})"));
  EXPECT_EQ(problem(R"({"index":0,"relevance_score":null})"),
            "the answer's item 1 in \"results\" has no relevance_score");
  EXPECT_EQ(problem(R"({"index":1,"relevance_score":0.1})"),
            "the answer's item 1 in \"results\" has no index of its own below 2");
}

TEST(ListAnswerReader, SaysWhatIsWrong) {
  const auto reader = list_answer_reader(AnswerList::Vectors, 2);
  EXPECT_EQ(read(*reader, "<html>").problem, "the answer is no JSON");
  EXPECT_EQ(read(*reader, "").problem, "the answer is no JSON");
  EXPECT_EQ(read(*reader, R"({"data":[1,2])").problem, "the answer is no JSON");
  EXPECT_EQ(read(*reader, R"({"results":[]})").problem, "the answer has no list \"data\"");
  EXPECT_EQ(read(*reader, R"([1])").problem, "the answer has no list \"data\"");
  EXPECT_EQ(read(*reader, R"({"data":[1]})").problem, "the answer has 1 items in \"data\", not 2");
  // A status of 200, and an error all the same.
  EXPECT_EQ(read(*reader, R"({"error":{"message":"model exploded","code":500}})").problem,
            "the answer has no list \"data\": model exploded");
  // And reads the next one as if nothing had been.
  EXPECT_FALSE(read(*reader, two_vectors()).problem);
}

TEST(ListAnswerReader, KeepsNoMoreThanAnAnswerCanBe) {
  const auto body = two_vectors();
  const auto reader = list_answer_reader(AnswerList::Vectors, 2, body.size());
  EXPECT_TRUE(reader->on_body(body, 1));
  EXPECT_FALSE(reader->on_body(" ", 1));
  EXPECT_FALSE(reader->on_body("", 1));
  EXPECT_EQ(reader->finish().problem, "the answer is longer than the " +
                                          std::to_string(body.size()) +
                                          " bytes that what was asked for can need");
  EXPECT_FALSE(reader->on_body(body + " ", 1));
  reader->drop();
  EXPECT_FALSE(read(*reader, body).problem);
}

// What was asked for may need more than is ever read: the sentence says so. The bytes are an
// address alone, as none of them is looked at.
TEST(ListAnswerReader, SaysTheMostThatIsRead) {
  constexpr std::size_t kSize = kListBytesMost + 1;
  void* const space =
      ::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(space, MAP_FAILED);
  const auto reader = list_answer_reader(AnswerList::Vectors, 1);
  EXPECT_FALSE(reader->on_body({static_cast<const char*>(space), kSize}, 1));
  EXPECT_EQ(reader->finish().problem, "the answer is longer than the 1024 MiB that are read");
  ::munmap(space, kSize);
}

// A text alone: 1 MiB, 256 KiB, and 8 KiB or four bytes for each of 100 bytes. 4,096 texts would
// have 1 GiB and 1 MiB.
TEST(ListBytesMost, IsWhatItemsAndTheRequestCanNeed) {
  EXPECT_EQ(list_bytes_most(AnswerList::Vectors, 1, 100), 1'048'576U + 262'144U + 819'200U);
  EXPECT_EQ(list_bytes_most(AnswerList::Scores, 1, 100), 1'048'576U + 262'144U + 400U);
  EXPECT_EQ(list_bytes_most(AnswerList::Vectors, 4'096, 0), 1'073'741'824U);
}

// 4,096 vectors of 4,096 numbers of 22 bytes; a text of 512 tokens of at least a byte each, with a
// vector of 128 such numbers a token.
TEST(ListBytesMost, IsEnoughForHonestServers) {
  EXPECT_GT(list_bytes_most(AnswerList::Vectors, 4'096, 0), 4'096U * 4'096U * 22U);
  EXPECT_GT(list_bytes_most(AnswerList::Vectors, 1, 512), 512U * 128U * 22U);
}

// 16 MiB and 16 KiB a token.
TEST(ReplyBytesMost, IsWhatEventsCanNeed) {
  EXPECT_EQ(reply_bytes_most(64), 16'777'216U + 1'048'576U);
  EXPECT_EQ(reply_bytes_most(1'000'000), 1'073'741'824U);
  EXPECT_EQ(reply_bytes_most(~0ULL), 1'073'741'824U);
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
            "the stream reports an error: full");
  EXPECT_EQ(read(*reader, "data: {\"error\":{\"code\":500}}\n\n").problem,
            "the stream reports an error: {\"code\":500}");
  EXPECT_EQ(read(*reader, R"({"error":{"message":"model exploded"}})").problem,
            "the answer is no stream: model exploded");
  EXPECT_EQ(read(*reader, chat_event(R"({"content":"a"})") + R"({"error":"gone"})").problem,
            "the stream ended before its [DONE]");
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
  EXPECT_TRUE(reader->on_body(event, 0));
  EXPECT_FALSE(reader->on_body(event, 1));
  EXPECT_FALSE(reader->on_body(event, 2));
  const auto facts = reader->finish();
  EXPECT_EQ(facts.problem,
            "the stream is longer than the 100 bytes that what was asked for can need");
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
