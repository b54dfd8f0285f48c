#include "jobs/record_writer.h"

#include <gtest/gtest.h>

#include <future>

#include "jobs/input_identity.h"

namespace muster {
namespace {

/// Keeps the texts of what is appended, and waits or fails on demand. As the output of files does,
/// it knows of a step that it began only at the next one, and says the same after a failure.
class KeepingOutput final : public RecordOutput {
 public:
  Status append(WindowRecord& record) override {
    auto& entry = record.entry;
    if (gate.valid()) gate.wait();
    has_failed |= entry.text == fails_at;
    if (has_failed) return Error{ErrorKind::ResourceExhausted, "the disk is full"};
    if (record.has_result()) entry.row = row_count++;
    texts += entry.text;
    return Done{};
  }
  Status commit(const std::string& hash) override {
    MUSTER_TRY(begin_commit(hash));
    durable = begun;
    return Done{};
  }
  Status begin_commit(const std::string& hash) override {
    durable = begun;
    if (has_failed) return Error{ErrorKind::ResourceExhausted, "the disk is full"};
    commits += "commit " + hash + "\n";
    begun = texts.size();
    return Done{};
  }
  Status finish(OutputRecord record) override {
    commits += "finish " + record.records_hash + "\n";
    is_over = true;
    return Done{};
  }
  std::uint64_t durable_record_count() const override { return durable; }
  bool is_finished() const override { return is_over; }

  std::shared_future<void> gate;
  std::string fails_at;
  std::string texts;
  std::string commits;
  std::uint64_t row_count = 0;
  std::uint64_t begun = 0;
  std::uint64_t durable = 0;
  bool has_failed = false;
  bool is_over = false;
};

WindowRecord record_of(std::string text, std::uint32_t token_count = 3) {
  WindowRecord record;
  record.entry.line = 7;
  record.entry.text = std::move(text);
  record.entry.token_count = token_count;
  record.result.row = {1, 2};
  record.input_position = 100 + token_count;
  return record;
}

std::vector<RecordPtr> records_of(std::initializer_list<const char*> texts) {
  std::vector<RecordPtr> records;
  for (const auto* text : texts) {
    records.push_back(std::make_unique<WindowRecord>(record_of(text)));
  }
  return records;
}

std::string hash_of(std::initializer_list<const char*> texts) {
  Hash128 hash;
  for (const auto* text : texts) {
    hash_record(hash, {.line = 7, .id = "", .text = text, .fields = ""});
  }
  return hash.hex();
}

class RecordWriterTest : public testing::Test {
 protected:
  std::unique_ptr<KeepingOutput> made_ = std::make_unique<KeepingOutput>();
  KeepingOutput& output_ = *made_;
};

TEST_F(RecordWriterTest, WritesInOrderAndCountsWhatIsOfThisRun) {
  RecordWriter writer(std::move(made_), Hash128());
  writer.give(records_of({"a", "b"}));
  auto last = records_of({"c", "d", "e"});
  last[0]->result.row.clear();  // a bad record
  last[1]->is_resumed = true;
  last[2]->entry.is_truncated = true;
  last[2]->input_position = 500;
  writer.give(std::move(last));
  ASSERT_TRUE(writer.wait());
  EXPECT_EQ(output_.texts, "abcde");
  const auto counts = writer.counts();
  EXPECT_EQ(counts.text_count, 3U);
  EXPECT_EQ(counts.token_count, 9U);
  EXPECT_EQ(counts.bad_count, 1U);
  EXPECT_EQ(counts.truncated_count, 1U);
  EXPECT_EQ(counts.input_size_consumed, 500U);
  EXPECT_EQ(counts.durable_record_count, 0U);
}

TEST_F(RecordWriterTest, AStepIsOfAllThatWasGivenBeforeIt) {
  RecordWriter writer(std::move(made_), Hash128());
  writer.give(records_of({"a", "b"}));
  writer.begin_commit();
  ASSERT_TRUE(writer.wait());
  EXPECT_EQ(output_.commits, "commit " + hash_of({"a", "b"}) + "\n");
  EXPECT_EQ(writer.counts().durable_record_count, 0U) << "nobody has asked whether it is";
  writer.give(records_of({"c"}));
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(writer.counts().durable_record_count, 3U);
  ASSERT_TRUE(writer.finish({}));
  EXPECT_TRUE(writer.is_finished());
  EXPECT_TRUE(output_.commits.ends_with("finish " + hash_of({"a", "b", "c"}) + "\n"))
      << output_.commits;
}

TEST_F(RecordWriterTest, GoesOnFromTheHashOfAnEarlierRun) {
  Hash128 before;
  hash_record(before, {.line = 7, .id = "", .text = "a", .fields = ""});
  RecordWriter writer(std::move(made_), std::move(before));
  writer.give(records_of({"b"}));
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(output_.commits, "commit " + hash_of({"a", "b"}) + "\n");
}

TEST_F(RecordWriterTest, WritesNothingAfterAFailureAndCountsWhatIsDurable) {
  output_.fails_at = "c";
  RecordWriter writer(std::move(made_), Hash128());
  writer.give(records_of({"a"}));
  writer.begin_commit();
  ASSERT_TRUE(writer.wait());
  writer.give(records_of({"b", "c", "d"}));
  const auto failed = writer.wait();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the disk is full");
  writer.give(records_of({"e"}));
  EXPECT_FALSE(writer.commit());
  EXPECT_EQ(writer.counts().durable_record_count, 1U);
  EXPECT_FALSE(writer.finish({}));
  EXPECT_EQ(output_.texts, "ab");
  EXPECT_EQ(output_.commits, "commit " + hash_of({"a"}) + "\n");
  EXPECT_EQ(writer.counts().text_count, 2U);
  std::string unwritten;
  for (const auto& record : writer.unwritten()) unwritten += record->entry.text;
  EXPECT_EQ(unwritten, "cde");
}

TEST_F(RecordWriterTest, WhatWaitsCanBeDropped) {
  std::promise<void> reader;
  output_.gate = reader.get_future().share();
  RecordWriter writer(std::move(made_), Hash128());
  writer.give(records_of({"a"}));
  writer.drop_waiting();  // the thread may have it already
  writer.give(records_of({"b"}));
  writer.give(records_of({"c"}));
  writer.drop_waiting();
  reader.set_value();
  ASSERT_TRUE(writer.commit());
  EXPECT_LE(output_.texts.size(), 2U) << output_.texts;
}

TEST_F(RecordWriterTest, ReturnsWhatIsWrittenAndNothingElse) {
  output_.fails_at = "c";
  RecordWriter writer(std::move(made_), Hash128());
  auto records = records_of({"a", "b", "c", "d"});
  const std::vector<const WindowRecord*> written{records[0].get(), records[1].get()};
  const auto* row = records[1]->result.row.data();
  writer.give(std::move(records));
  ASSERT_FALSE(writer.wait());
  RecordSpares spares;
  writer.return_to(spares);
  const auto last = spares.take_record();
  const auto first = spares.take_record();
  EXPECT_EQ((std::vector<const WindowRecord*>{first.get(), last.get()}), written);
  EXPECT_EQ(last->entry.text, "");
  EXPECT_EQ(spares.take_row().data(), row);
  EXPECT_EQ(spares.take_row().size(), 2U);
  EXPECT_TRUE(spares.take_row().empty()) << "the others are unwritten, and still have theirs";
  ASSERT_EQ(writer.unwritten().size(), 2U);
  EXPECT_EQ(writer.unwritten()[0]->result.row.size(), 2U);
}

// The disk stutters: the loop goes on, and is told when it is too far ahead.
TEST_F(RecordWriterTest, HasNoRoomWhileMuchWaits) {
  std::promise<void> disk;
  output_.gate = disk.get_future().share();
  RecordWriter writer(std::move(made_), Hash128());
  writer.give(records_of({"a"}));
  EXPECT_TRUE(writer.has_room());
  auto large = records_of({"b", "c"});
  for (auto& record : large) record->result.row.resize(6 << 20);  // 24 MiB each
  writer.give(std::move(large));
  EXPECT_FALSE(writer.has_room()) << "what the thread has counts, too";
  disk.set_value();
  ASSERT_TRUE(writer.wait());
  EXPECT_TRUE(writer.has_room());
  EXPECT_EQ(output_.texts, "abc");
}

}  // namespace
}  // namespace muster
