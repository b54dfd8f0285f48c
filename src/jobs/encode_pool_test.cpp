#include "jobs/encode_pool.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <deque>
#include <random>
#include <string>

namespace muster {
namespace {

TextEncoder encoder(std::uint32_t length_max = 64) {
  auto tokenizer = Tokenizer::load(std::string(MUSTER_SOURCE_DIR) +
                                   "/src/tokenizer/testdata/bert_uncased/tokenizer.json");
  return {std::shared_ptr<const Tokenizer>(*std::move(tokenizer)), "query: ", false, length_max};
}

void await(const EncodePool& pool) {
  pollfd ready{pool.ready_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 60'000), 1);
}

bool is_ready(const EncodePool& pool) {
  pollfd ready{pool.ready_fd(), POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1;
}

// Texts of one word and of thousands, so that threads overtake each other.
TEST(EncodePool, GivesTheIdsOfOneEncoderInTheOrderOfTheTexts) {
  auto one = encoder();
  std::deque<std::string> texts;  // each stays where it is
  EncodePool pool(one, 4);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < 3'000; ++i) {
    const auto count = i % 100 == 0 ? 5'000 : random() % 20;
    auto& text = texts.emplace_back();
    for (std::size_t word = 0; word < count; ++word) {
      text += "word" + std::to_string(random() % 1'000) + " ";
    }
    pool.give(100 + i, text);
    pool.grow();
  }
  pool.flush();
  std::size_t next = 0;
  std::vector<TokenId> ids;
  while (next < texts.size()) {
    await(pool);
    for (const auto& text : pool.take()) {
      const auto expected = one.encode(texts[next], ids);
      ASSERT_EQ(text.key, 100 + next);
      const auto own = text.ids.values();
      ASSERT_EQ(std::vector<TokenId>(own.begin(), own.end()), ids) << texts[next];
      ASSERT_EQ(text.is_truncated, expected.is_truncated);
      ++next;
    }
  }
  EXPECT_FALSE(is_ready(pool)) << "all is taken";
  EXPECT_GT(pool.busy_seconds(), 0);
}

TEST(EncodePool, HasMoreThreadsOnlyWhileTextsWait) {
  const std::string text(2'000'000, 'a');  // the first thread has the first ones for a while
  EncodePool pool(encoder(), 2);
  pool.grow();
  EXPECT_EQ(pool.thread_count(), 1U) << "nothing waits";
  for (ItemKey key = 0; key < 100; ++key) pool.give(key, text);
  pool.grow();
  pool.grow();
  EXPECT_EQ(pool.thread_count(), 2U);
}

TEST(EncodePool, HoldsAFewTextsBackUntilTheyAreAskedFor) {
  EncodePool pool(encoder(), 1);
  pool.give(1, "a text");
  EXPECT_TRUE(pool.take().empty());
  pool.flush();
  pool.flush();  // nothing more
  await(pool);
  const auto texts = pool.take();
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts[0].key, 1U);
  EXPECT_FALSE(is_ready(pool));
}

}  // namespace
}  // namespace muster
