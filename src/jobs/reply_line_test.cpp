#include "jobs/reply_line.h"

#include <gtest/gtest.h>

#include "jobs/reply_seed.h"

namespace muster {
namespace {

TEST(ReplyLine, HasThePlaceOfItsPromptAndTheReply) {
  WindowRecord record;
  record.number = 3;
  record.entry.id = "a\"7";
  record.entry.input = "p.jsonl";
  record.entry.line = 5;
  record.result.reply = reply_members({.text = "so\n",
                                       .finish_reason = FinishReason::Length,
                                       .prompt_tokens = 12,
                                       .completion_tokens = 2});
  std::string lines;
  append_reply_line(record, lines);
  record.entry.id.clear();
  record.result.reply =
      reply_members({.text = "", .completion_tokens = 1, .seed = 18'000'000'000'000'000'000U});
  append_reply_line(record, lines);
  record.result.reply.clear();
  record.entry.reason = "p.jsonl:5: not JSON";
  append_reply_line(record, lines);
  EXPECT_EQ(
      lines,
      "{\"id\":\"a\\\"7\",\"index\":3,\"input\":\"p.jsonl\",\"line\":5,\"text\":\"so\\n\","
      "\"finish_reason\":\"length\",\"prompt_tokens\":12,\"completion_tokens\":2}\n"
      "{\"index\":3,\"input\":\"p.jsonl\",\"line\":5,\"text\":\"\",\"finish_reason\":\"stop\","
      "\"prompt_tokens\":0,\"completion_tokens\":1,\"seed\":18000000000000000000}\n"
      "{\"index\":3,\"input\":\"p.jsonl\",\"line\":5,\"text\":null,"
      "\"reason\":\"p.jsonl:5: not JSON\"}\n");
}

// SplitMix64 of seed 1234567, as its authors' program prints it.
// Source: prng.di.unimi.it, splitmix64.c; Rosetta Code, "Pseudo-random numbers/Splitmix64".
TEST(ReplySeed, IsSplitMix64OfTheRunsSeed) {
  EXPECT_EQ(reply_seed(1'234'567, 0), 6457827717110365317U);
  EXPECT_EQ(reply_seed(1'234'567, 1), 3203168211198807973U);
  EXPECT_EQ(reply_seed(1'234'567, 4), 16408922859458223821U);
}

}  // namespace
}  // namespace muster
