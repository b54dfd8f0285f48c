#include "jobs/replies_ahead.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "base/file.h"
#include "base/full_disk_fixture.h"
#include "dataset/checked_line.h"

namespace muster {
namespace {

constexpr const char* kRun = "0123456789abcdef0123456789abcdef";

class RepliesAheadTest : public testing::Test {
 protected:
  RepliesAheadTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("replies_ahead." + std::to_string(::getpid()))),
        files_(folder_ / "x.jsonl", OutputKind::Replies) {
    std::filesystem::create_directories(folder_);
  }
  ~RepliesAheadTest() override { std::filesystem::remove_all(folder_); }

  static WindowRecord record(std::uint64_t number, const std::string& reply = "") {
    WindowRecord record;
    record.number = number;
    record.entry.line = number + 1;
    record.entry.text = "prompt " + std::to_string(number);
    record.entry.token_count = 5;
    record.result = {.reply = reply, .reply_token_count = 7};
    return record;
  }

  static Status keep(RepliesAhead& ahead, std::uint64_t durable_count,
                     const std::vector<WindowRecord>& records) {
    std::vector<const WindowRecord*> waiting;
    for (const auto& each : records) waiting.push_back(&each);
    return ahead.keep(durable_count, waiting);
  }

  std::unique_ptr<RepliesAhead> reopened(std::uint64_t record_count = 0,
                                         const std::string& run = kRun) const {
    auto ahead = RepliesAhead::reopen(files_, run, record_count);
    EXPECT_TRUE(ahead) << ahead.error().message;
    return *std::move(ahead);
  }

  /// The reply that an interrupted run has left of a record; "-" for none.
  std::string found(std::uint64_t number) const {
    auto asked = record(number);
    return reopened()->take(asked) ? asked.result.reply : "-";
  }

  void make(const std::vector<WindowRecord>& records) const {
    RepliesAhead ahead(files_, kRun);
    ASSERT_TRUE(keep(ahead, 0, records));
  }

  const std::filesystem::path folder_;
  const RunFiles files_;
};

TEST_F(RepliesAheadTest, GivesARecordTheReplyThatWasComputedOfIt) {
  make({record(2, "\"text\":\"a \\\"b\\\"\\n\""), record(9, "\"text\":\"\"")});
  const auto ahead = reopened();
  EXPECT_EQ(ahead->durable_count(), 2U);
  auto asked = record(2);
  asked.entry.token_count = 0;
  ASSERT_TRUE(ahead->take(asked));
  EXPECT_EQ(asked.result.reply, "\"text\":\"a \\\"b\\\"\\n\"");
  EXPECT_EQ(asked.result.reply_token_count, 7U);
  EXPECT_EQ(asked.entry.token_count, 5U);
  auto other = record(3);
  EXPECT_FALSE(ahead->take(other));
  EXPECT_FALSE(other.has_result());
}

TEST_F(RepliesAheadTest, AReplyIsNotUsedForAnotherPrompt) {
  make({record(2, "\"text\":\"a\"")});
  const auto ahead = reopened();
  auto asked = record(2);
  asked.entry.text = "another";
  EXPECT_FALSE(ahead->take(asked));
  EXPECT_EQ(ahead->durable_count(), 0U);
  auto conversation = record(2);
  conversation.is_conversation = true;
  EXPECT_FALSE(reopened()->take(conversation)) << "the same text, and another prompt";
}

TEST_F(RepliesAheadTest, IsOfOneRunAndOfRecordsThatAreNotWritten) {
  make({record(2, "\"text\":\"a\""), record(9, "\"text\":\"b\"")});
  EXPECT_EQ(reopened(0, std::string(32, 'f'))->durable_count(), 0U);
  EXPECT_EQ(reopened(3)->durable_count(), 1U);
  EXPECT_EQ(*count_ahead_replies(files_.ahead, kRun, 3), 1U);
  EXPECT_EQ(*count_ahead_replies(folder_ / "none", kRun, 0), 0U);
}

TEST_F(RepliesAheadTest, AReplyStaysUntilItIsWhereItBelongs) {
  RepliesAhead ahead(files_, kRun);
  ASSERT_TRUE(keep(ahead, 0, {record(2, "\"text\":\"a\"")}));
  ASSERT_TRUE(keep(ahead, 1, {record(4, "\"text\":\"b\"")}));  // 2 is with the writer
  EXPECT_EQ(found(2), "\"text\":\"a\"");
  EXPECT_EQ(found(4), "\"text\":\"b\"");
  ASSERT_TRUE(keep(ahead, 3, {record(6, "\"text\":\"c\"")}));
  EXPECT_EQ(ahead.durable_count(), 2U);
  EXPECT_EQ(found(2), "-");
  EXPECT_EQ(found(4), "\"text\":\"b\"");
  EXPECT_EQ(found(6), "\"text\":\"c\"");
}

TEST_F(RepliesAheadTest, IsWrittenOnlyWhereThereIsSomethingNew) {
  RepliesAhead ahead(files_, kRun);
  ASSERT_TRUE(keep(ahead, 0, {record(2)})) << "one without a reply";
  EXPECT_FALSE(std::filesystem::exists(files_.ahead));
  ASSERT_TRUE(keep(ahead, 0, {record(2, "\"text\":\"a\"")}));
  std::filesystem::remove(files_.ahead);
  ASSERT_TRUE(keep(ahead, 0, {record(2, "\"text\":\"a\"")}));
  EXPECT_FALSE(std::filesystem::exists(files_.ahead));
  EXPECT_FALSE(std::filesystem::exists(files_.ahead_part));
}

// Torn anywhere, or with any byte another: what is found is what was put there, or nothing.
TEST_F(RepliesAheadTest, ADamagedLineIsNone) {
  make({record(2, "\"text\":\"a\""), record(9, "\"text\":\"b\"")});
  const auto whole = *read_file(files_.ahead);
  const auto check = [&](const std::string& content) {
    ASSERT_TRUE(write_file_atomically(files_.ahead, content));
    const auto first = found(2);
    const auto second = found(9);
    EXPECT_TRUE(first == "-" || first == "\"text\":\"a\"") << first;
    EXPECT_TRUE(second == "-" || second == "\"text\":\"b\"") << second;
    EXPECT_TRUE(first == "-" || second == "-") << "one of them is damaged";
  };
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) check(whole.substr(0, size));
  for (std::size_t at = 0; at + 1 < whole.size(); ++at) {
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    check(changed);
  }
}

TEST_F(RepliesAheadTest, AnotherVersionIsRefusedAndAnotherFileIsNone) {
  ASSERT_TRUE(write_file_atomically(
      files_.ahead, checked_line(fmt::format(R"({{"muster_ahead":2,"run":"{}"}})", kRun))));
  const auto refused = RepliesAhead::reopen(files_, kRun, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(refused.error().message, files_.ahead.string() +
                                         ": written by another version of muster: start anew with "
                                         "--restart");
  ASSERT_TRUE(write_file_atomically(files_.ahead, "my own\n"));
  EXPECT_EQ(reopened()->durable_count(), 0U);
}

TEST_F(RepliesAheadTest, WhereThereIsNoRoomWhatWasKeptBeforeStays) {
  RepliesAhead ahead(files_, kRun);
  ASSERT_TRUE(keep(ahead, 0, {record(2, "\"text\":\"a\"")}));
  const auto full = [&] {
    const FullDisk disk(1000);
    return keep(ahead, 0, {record(4, "\"text\":\"" + std::string(2000, 'b') + "\"")});
  }();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(ahead.durable_count(), 1U);
  EXPECT_EQ(found(2), "\"text\":\"a\"");
  EXPECT_EQ(found(4), "-");
  EXPECT_FALSE(std::filesystem::exists(files_.ahead_part));
  ASSERT_TRUE(keep(ahead, 0, {})) << "and again, with room";
  EXPECT_NE(found(4), "-");
}

}  // namespace
}  // namespace muster
