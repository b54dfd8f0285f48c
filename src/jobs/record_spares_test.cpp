#include "jobs/record_spares.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace muster {
namespace {

RecordPtr used_record(std::size_t row_size = 3) {
  auto record = std::make_unique<WindowRecord>();
  record->key = 1;
  record->number = 2;
  record->entry = {.row = 3,
                   .id = "id",
                   .input = "in.txt",
                   .line = 4,
                   .token_count = 5,
                   .is_truncated = true,
                   .fields = "{}",
                   .text = "text",
                   .reason = "reason"};
  record->is_conversation = true;
  record->result.row.assign(row_size, 0.5F);
  record->result.reply = "reply";
  record->result.reply_token_count = 6;
  record->is_done = true;
  record->is_resumed = true;
  record->input_position = 7;
  record->size = 8;
  return record;
}

TEST(RecordSpares, ARecordThatGoesOutAgainIsAsANewOne) {
  RecordSpares spares;
  auto used = used_record();
  const auto* place = used.get();
  spares.add(std::move(used));
  const auto record = spares.take_record();
  EXPECT_EQ(record.get(), place);
  EXPECT_EQ(record->key, 0U);
  EXPECT_EQ(record->number, 0U);
  EXPECT_FALSE(record->entry.row);
  EXPECT_EQ(record->entry.line, 0U);
  EXPECT_EQ(record->entry.token_count, 0U);
  EXPECT_FALSE(record->entry.is_truncated);
  const auto& [row, id, input, line, token_count, is_truncated, fields, text, reason] =
      record->entry;
  EXPECT_EQ(id + input + fields + text + reason, "");
  EXPECT_FALSE(record->is_conversation);
  EXPECT_FALSE(record->has_result());
  EXPECT_EQ(record->result.reply_token_count, 0U);
  EXPECT_FALSE(record->is_done);
  EXPECT_FALSE(record->is_resumed);
  EXPECT_EQ(record->input_position, 0U);
  EXPECT_EQ(record->size, 0U);
}

TEST(RecordSpares, WhereThereIsNoneANewOneIsMade) {
  RecordSpares spares;
  EXPECT_NE(spares.take_record(), nullptr);
  EXPECT_EQ(spares.take_row().capacity(), 0U);
}

TEST(RecordSpares, TheMemoryOfARowIsUsedAgain) {
  RecordSpares spares;
  auto used = used_record();
  const auto* memory = used->result.row.data();
  spares.add(std::move(used));
  RecordSpares others;
  others.take_from(spares);
  EXPECT_EQ(spares.take_row().capacity(), 0U) << "each is in one place";
  const auto row = others.take_row();
  EXPECT_EQ(row.data(), memory);
  EXPECT_EQ(row.size(), 3U);
}

TEST(RecordSpares, ALongTextAndALargeRowAreGivenBack) {
  RecordSpares spares;
  auto used = used_record(4 << 20);  // 16 MiB
  used->entry.text.assign(100'000, 'x');
  spares.add(std::move(used));
  EXPECT_LT(spares.take_record()->entry.text.capacity(), 1000U);
  EXPECT_EQ(spares.take_row().capacity(), 0U);
}

// 12 MiB of rows at most, whoever they come from; what there is no room for stays where it is.
TEST(RecordSpares, LargeRowsAreKeptByTheirBytes) {
  RecordSpares spares;
  EXPECT_TRUE(spares.is_low());
  for (int i = 0; i < 13; ++i) spares.add(used_record((1 << 20) / sizeof(float)));
  EXPECT_TRUE(spares.is_low()) << "of records";
  RecordSpares others;
  for (int i = 0; i < 6'000; ++i) others.add(used_record(300));  // 6.9 MiB
  EXPECT_FALSE(others.is_low());
  others.take_from(spares);
  std::size_t count = 0;
  while (spares.take_row().capacity() > 0) ++count;
  EXPECT_EQ(count, 7U) << "five more fit beside the small ones";
}

TEST(RecordSpares, OnlySoManyRecordsAndRowsAreKept) {
  RecordSpares spares;
  for (int i = 0; i < 10'000; ++i) {
    auto used = used_record();
    used->entry.text.assign(100, 'x');
    spares.add(std::move(used));
  }
  EXPECT_FALSE(spares.is_low());
  std::size_t record_count = 0;
  while (spares.take_record()->entry.text.capacity() >= 100) ++record_count;
  EXPECT_EQ(record_count, 8192U);
  std::size_t row_count = 0;
  while (spares.take_row().capacity() > 0) ++row_count;
  EXPECT_EQ(row_count, 8192U);
}

}  // namespace
}  // namespace muster
