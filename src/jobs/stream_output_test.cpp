#include "jobs/stream_output.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace muster {
namespace {

class StreamOutputTest : public testing::Test {
 protected:
  StreamOutput open(StreamFormat format) {
    return StreamOutput({.format = format,
                         .name = "standard output",
                         .write = [this](std::string_view piece) -> Status {
                           written_ += piece;
                           return Done{};
                         },
                         .flush = [this]() -> Status {
                           ++flush_count_;
                           return Done{};
                         }});
  }

  std::string written_;
  int flush_count_ = 0;
};

TEST_F(StreamOutputTest, ALineHasIdFieldsAndVectorAndABadRecordItsReason) {
  auto output = open(StreamFormat::Jsonl);
  WindowRecord good;
  good.entry.id = "a\"7";
  good.entry.fields = R"({"lang":"de"})";
  good.result.row = {0.5F, -1.0F};
  ASSERT_TRUE(output.append(good));
  EXPECT_EQ(good.entry.row, 0U);
  WindowRecord bad;
  bad.entry.id = "b";
  bad.entry.reason = "in.jsonl:2: not JSON";
  ASSERT_TRUE(output.append(bad));
  EXPECT_EQ(bad.entry.row, std::nullopt);
  WindowRecord plain;
  plain.result.row = {2.0F, 3.0F};
  ASSERT_TRUE(output.append(plain));
  EXPECT_EQ(plain.entry.row, 1U);
  EXPECT_EQ(written_,
            "{\"id\":\"a\\\"7\",\"fields\":{\"lang\":\"de\"},\"embedding\":[0.5,-1]}\n"
            "{\"embedding\":null,\"reason\":\"in.jsonl:2: not JSON\"}\n"
            "{\"embedding\":[2,3]}\n");
  EXPECT_EQ(flush_count_, 0);
  ASSERT_TRUE(output.commit(""));
  EXPECT_EQ(flush_count_, 1);
  ASSERT_TRUE(output.finish({}));
  EXPECT_EQ(flush_count_, 2);
}

TEST_F(StreamOutputTest, BareNumbersAreTheRowsBytes) {
  auto output = open(StreamFormat::F32);
  const std::array first{1.5F, -2.0F};
  const std::array second{0.0F, 3e38F};
  for (const auto& row : {first, second}) {
    WindowRecord record;
    record.result.row.assign(row.begin(), row.end());
    ASSERT_TRUE(output.append(record));
  }
  ASSERT_EQ(written_.size(), 16U);
  EXPECT_EQ(std::memcmp(written_.data(), first.data(), 8), 0);
  EXPECT_EQ(std::memcmp(written_.data() + 8, second.data(), 8), 0);
}

}  // namespace
}  // namespace muster
