// Log-probabilities as OpenAI's clients read them, to the byte.
#include "server/logprobs_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

namespace muster {
namespace {

ReplyToken token(const std::string& bytes, float logprob) {
  return {.chosen = {.bytes = bytes, .logprob = logprob}};
}

TEST(LogprobsJson, AChatHasAnObjectForEachToken) {
  LogprobsJson logprobs(true);
  EXPECT_TRUE(logprobs.is_empty());
  logprobs.add({.chosen = {.bytes = " a", .logprob = -0.5F},
                .top = {{.bytes = "<|end|>", .is_text = false, .logprob = -0.25F},
                        {.bytes = "\"", .logprob = -2}}});
  logprobs.add(token("b", 0));
  EXPECT_FALSE(logprobs.is_empty());
  EXPECT_EQ(logprobs.take(),
            R"({"content":[{"token":" a","logprob":-0.5,"bytes":[32,97],"top_logprobs":[)"
            R"({"token":"<|end|>","logprob":-0.25,"bytes":null},)"
            R"({"token":"\"","logprob":-2,"bytes":[34]}]},)"
            R"({"token":"b","logprob":0,"bytes":[98],"top_logprobs":[]}],"refusal":null})");
  EXPECT_TRUE(logprobs.is_empty());
  EXPECT_EQ(logprobs.take(), R"({"content":[],"refusal":null})") << "a reply of no token";
}

// The lists of /v1/completions: the chosen token is among the likeliest, be it one more than asked.
TEST(LogprobsJson, ACompletionHasFourLists) {
  LogprobsJson logprobs(false);
  logprobs.add({.chosen = {.bytes = "a", .logprob = -1.5F},
                .top = {{.bytes = "b", .logprob = -0.5F}, {.bytes = "b", .logprob = -2}}});
  logprobs.add(
      {.chosen = {.bytes = "bc", .logprob = -0.5F}, .top = {{.bytes = "bc", .logprob = -0.5F}}});
  EXPECT_EQ(logprobs.take(),
            R"({"tokens":["a","bc"],"token_logprobs":[-1.5,-0.5],)"
            R"("top_logprobs":[{"b":-0.5,"a":-1.5},{"bc":-0.5}],"text_offset":[0,1]})");
  // The next part goes on where the last one ended.
  logprobs.add(token("d", -1));
  EXPECT_EQ(
      logprobs.take(),
      R"({"tokens":["d"],"token_logprobs":[-1],"top_logprobs":[{"d":-1}],"text_offset":[3]})");
  EXPECT_EQ(logprobs.take(),
            R"({"tokens":[],"token_logprobs":[],"top_logprobs":[],"text_offset":[]})");
}

// The first token of a prompt that is echoed: nothing is before it.
TEST(LogprobsJson, WhatNothingForetellsIsNull) {
  LogprobsJson logprobs(false);
  logprobs.add({.chosen = {.bytes = "<s>", .is_text = false, .logprob = std::nullopt}});
  logprobs.add({.chosen = {.bytes = "a", .logprob = -0.5F}});
  EXPECT_EQ(logprobs.take(), R"({"tokens":["<s>","a"],"token_logprobs":[null,-0.5],)"
                             R"("top_logprobs":[null,{"a":-0.5}],"text_offset":[0,0]})");
}

// "é" is C3 A9, and U+1F499 is F0 9F 92 99, here in two tokens as in OpenAI's example.
TEST(LogprobsJson, PartsOfACharacterAreShownAsBytes) {
  LogprobsJson chat(true);
  chat.add(token("\xF0\x9F\x92", -0.5F));
  chat.add(token(" \xC3", 0));
  chat.add(token("\xE2\\", 0));
  EXPECT_EQ(
      chat.take(),
      R"({"content":[)"
      R"({"token":"\\xf0\\x9f\\x92","logprob":-0.5,"bytes":[240,159,146],"top_logprobs":[]},)"
      R"({"token":" \\xc3","logprob":0,"bytes":[32,195],"top_logprobs":[]},)"
      R"({"token":"\\xe2\\\\","logprob":0,"bytes":[226,92],"top_logprobs":[]}],"refusal":null})");
  LogprobsJson lists(false);
  for (const char* bytes : {"a", "\xF0\x9F\x92", "\x99", "\xC3",
                            "\xA9"
                            "b",
                            "c"}) {
    lists.add(token(bytes, 0));
  }
  EXPECT_EQ(
      lists.take(),
      R"({"tokens":["a","bytes:\\xf0\\x9f\\x92","bytes:\\x99","bytes:\\xc3","bytes:\\xa9b","c"],)"
      R"("token_logprobs":[0,0,0,0,0,0],"top_logprobs":[{"a":0},)"
      R"({"bytes:\\xf0\\x9f\\x92":0},{"bytes:\\x99":0},{"bytes:\\xc3":0},{"bytes:\\xa9b":0},)"
      R"({"c":0}],"text_offset":[0,1,1,2,2,4]})");
}

TEST(LogprobsJson, ATokenThatIsNoTextTakesNoPlaceInIt) {
  LogprobsJson logprobs(false);
  logprobs.add(token("a", 0));
  logprobs.add({.chosen = {.bytes = "<|x|>", .is_text = false}});
  logprobs.add(token("b", 0));
  EXPECT_EQ(logprobs.take(), R"({"tokens":["a","<|x|>","b"],"token_logprobs":[0,0,0],)"
                             R"("top_logprobs":[{"a":0},{"<|x|>":0},{"b":0}],)"
                             R"("text_offset":[0,1,1]})");
}

// It has five letters, and no bytes of the text are its own.
TEST(LogprobsJson, ASpecialTokenThatAnEchoShowsTakesItsPlace) {
  LogprobsJson logprobs(false);
  logprobs.add(token("a", 0));
  logprobs.add({.chosen = {.bytes = "<|x|>", .is_text = false, .is_echoed = true}});
  logprobs.add(token("b", 0));
  EXPECT_EQ(logprobs.take(), R"({"tokens":["a","<|x|>","b"],"token_logprobs":[0,0,0],)"
                             R"("top_logprobs":[{"a":0},{"<|x|>":0},{"b":0}],)"
                             R"("text_offset":[0,1,6]})");
}

// The logarithm of zero has no form in JSON.
TEST(LogprobsJson, WhatCannotBeHasOpenAisWordForIt) {
  LogprobsJson logprobs(true);
  logprobs.add(token("a", -std::numeric_limits<float>::infinity()));
  EXPECT_EQ(logprobs.take(),
            R"({"content":[{"token":"a","logprob":-9999,"bytes":[97],"top_logprobs":[]}],)"
            R"("refusal":null})");
}

}  // namespace
}  // namespace muster
