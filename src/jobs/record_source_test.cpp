#include "jobs/record_source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <set>
#include <utility>

namespace muster {
namespace {

/// What a reader was asked, as seen from another thread.
struct Asked {
  std::atomic<std::uint64_t> given = 0;  // records
  std::atomic<std::uint64_t> taken = 0;  // of these, by the test
  std::atomic<std::uint64_t> ahead_most = 0;
  std::uint64_t told_at = 0;  // records given, when
  std::promise<void> is_there;
};

/// Record i, from 1, is in line 2 i behind a blank one, and ends at byte 10 i; every hundredth is a
/// bad one. Behind the last come one more blank line, 5 bytes, and the end or an error.
class CountingReader final : public TextReader {
 public:
  struct Options {
    bool is_file = true;
    std::uint64_t count = 0;
    std::size_t text_size = 3;
    bool has_error = false;
    bool lacks_memory = false;  // for the one behind the last
  };

  CountingReader(Options options, Asked& asked) : options_(options), asked_(asked) {}

  Result<bool> next(TextRecord& record) override {
    if (at_ == options_.count) {
      blank_count_ = at_ + 1;
      size_consumed_ = 10 * at_ + 5;
      if (options_.lacks_memory) throw std::bad_alloc();
      if (options_.has_error) return Error{ErrorKind::Corrupt, "the stream is broken"};
      return false;
    }
    ++at_;
    blank_count_ = at_;
    size_consumed_ = 10 * at_;
    record.input_index = at_ % 2 == 0 ? 1 : 0;
    record.line = 2 * at_;
    record.id = "id" + std::to_string(at_);
    record.fields = R"({"n":1})";
    record.is_conversation = at_ % 3 == 0;
    record.fault.reset();
    record.text.assign(options_.text_size, static_cast<char>('a' + at_ % 26));
    if (at_ % 100 == 0) {
      record.text.clear();
      record.fault = Error{ErrorKind::InvalidArgument, "a bad one"};
    }
    const auto given = ++asked_.given;
    const auto ahead = given - asked_.taken;
    if (ahead > asked_.ahead_most) asked_.ahead_most = ahead;
    if (given == asked_.told_at) asked_.is_there.set_value();
    return true;
  }

  std::optional<std::uint64_t> size_total() const override {
    return options_.is_file ? std::optional(10 * options_.count + 5) : std::nullopt;
  }
  std::uint64_t size_consumed() const override { return size_consumed_; }
  std::uint64_t blank_count() const override { return blank_count_; }
  std::vector<std::string> fields_not_met() const override { return {"no such field"}; }

 private:
  const Options options_;
  Asked& asked_;
  std::uint64_t at_ = 0;
  std::uint64_t size_consumed_ = 0;
  std::uint64_t blank_count_ = 0;
};

class RecordSourceTest : public testing::Test {
 protected:
  std::unique_ptr<RecordSource> source(CountingReader::Options options) {
    return std::make_unique<RecordSource>(std::make_unique<CountingReader>(options, asked_),
                                          std::vector<std::string>{"a.txt", "b.txt"});
  }

  // Takes all records, and looks at each; how many there were.
  std::uint64_t take_all(RecordSource& source) {
    ReadRecord read;
    std::uint64_t count = 0;
    for (;; ++count) {
      const auto has_next = source.next(read);
      if (!has_next || !*has_next) break;
      ++asked_.taken;
      expect_is(read, count + 1);
      EXPECT_EQ(source.size_consumed(), 10 * (count + 1));
      EXPECT_EQ(source.blank_count(), count + 1);
    }
    return count;
  }

  static void expect_is(const ReadRecord& read, std::uint64_t number) {
    const auto& record = *read.record;
    EXPECT_EQ(record.entry.input, number % 2 == 0 ? "b.txt" : "a.txt");
    EXPECT_EQ(record.entry.line, 2 * number);
    EXPECT_EQ(record.entry.id, "id" + std::to_string(number));
    EXPECT_EQ(record.entry.fields, R"({"n":1})");
    EXPECT_EQ(record.is_conversation, number % 3 == 0);
    EXPECT_EQ(record.input_position, 10 * number);
    EXPECT_FALSE(record.is_done);
    if (number % 100 == 0) {
      ASSERT_NE(read.fault, nullptr) << number;
      EXPECT_EQ(read.fault->message, "a bad one");
      EXPECT_EQ(record.entry.text, "");
    } else {
      EXPECT_EQ(read.fault, nullptr);
      EXPECT_EQ(record.entry.text.at(0), static_cast<char>('a' + number % 26));
    }
  }

  Asked asked_;
};

// More than a chunk, and not a whole number of them.
TEST_F(RecordSourceTest, GivesTheRecordsInTheirOrderWhoeverReads) {
  for (const bool is_file : {true, false}) {
    const auto records = source({.is_file = is_file, .count = 1'000});
    EXPECT_EQ(records->size_consumed(), 0U);
    EXPECT_EQ(take_all(*records), 1'000U);
    EXPECT_EQ(records->size_consumed(), 10'005U) << "with the blank line at the end";
    EXPECT_EQ(records->blank_count(), 1'001U);
    EXPECT_EQ(records->fields_not_met(), std::vector<std::string>{"no such field"});
    ReadRecord read;
    const auto more = records->next(read);
    ASSERT_TRUE(more);
    EXPECT_FALSE(*more) << "it stays at the end";
    EXPECT_TRUE(records->is_ready());
  }
}

TEST_F(RecordSourceTest, AnInputMayBeEmpty) {
  for (const bool is_file : {true, false}) {
    EXPECT_EQ(take_all(*source({.is_file = is_file, .count = 0})), 0U);
  }
}

TEST_F(RecordSourceTest, AnErrorComesBehindTheRecordsBeforeIt) {
  for (const bool is_file : {true, false}) {
    const auto records = source({.is_file = is_file, .count = 300, .has_error = true});
    ReadRecord read;
    for (std::uint64_t i = 1; i <= 300; ++i) {
      const auto has_next = records->next(read);
      ASSERT_TRUE(has_next && *has_next) << i;
    }
    const auto failed = records->next(read);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind, ErrorKind::Corrupt);
    EXPECT_EQ(failed.error().message, "the stream is broken");
    const auto more = records->next(read);
    ASSERT_TRUE(more);
    EXPECT_FALSE(*more);
  }
}

// In the thread nobody would catch it: the program would end there.
TEST_F(RecordSourceTest, WantOfMemoryIsAnErrorBehindTheRecordsBeforeIt) {
  for (const bool is_file : {true, false}) {
    const auto records = source({.is_file = is_file, .count = 300, .lacks_memory = true});
    ReadRecord read;
    for (std::uint64_t i = 1; i <= 300; ++i) {
      const auto has_next = records->next(read);
      ASSERT_TRUE(has_next && *has_next) << i;
      expect_is(read, i);
    }
    const auto failed = records->next(read);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind, ErrorKind::ResourceExhausted);
    EXPECT_EQ(failed.error().message, "there is no memory for a record near b.txt:600");
    const auto more = records->next(read);
    ASSERT_TRUE(more);
    EXPECT_FALSE(*more) << "the reader is not asked again";
  }
}

// Four chunks of 256 that are ready, the one that the thread is at, and the one that is taken from.
TEST_F(RecordSourceTest, ReadsOnlySoManyRecordsAhead) {
  asked_.told_at = 5 * 256;
  auto there = asked_.is_there.get_future();
  const auto records = source({.count = 20'000});
  there.wait();
  EXPECT_EQ(take_all(*records), 20'000U);
  EXPECT_GE(asked_.ahead_most.load(), 5 * 256U);
  EXPECT_LE(asked_.ahead_most.load(), 6 * 256U);
}

// One that is ready, one that the thread is at, and the one that was just given.
TEST_F(RecordSourceTest, ReadsFewLargeRecordsAhead) {
  asked_.told_at = 2;
  auto there = asked_.is_there.get_future();
  const auto records = source({.count = 90, .text_size = 300'000});
  there.wait();
  EXPECT_EQ(take_all(*records), 90U);
  EXPECT_LE(asked_.ahead_most.load(), 3U);
}

TEST_F(RecordSourceTest, WhatMayBeSilentIsReadWhenItIsAskedFor) {
  const auto records = source({.is_file = false, .count = 1'000});
  EXPECT_EQ(take_all(*records), 1'000U);
  EXPECT_EQ(asked_.ahead_most.load(), 1U);
}

TEST_F(RecordSourceTest, EndsWhileTheThreadWaitsForRoom) {
  asked_.told_at = 5 * 256;
  auto there = asked_.is_there.get_future();
  auto records = source({.count = 20'000});
  there.wait();
  ReadRecord read;
  ASSERT_TRUE(records->next(read));
  records.reset();
  EXPECT_LE(asked_.given.load(), 6 * 256U);
  expect_is(read, 1);
}

TEST_F(RecordSourceTest, RecordsThatComeBackAreUsedAgain) {
  for (const bool is_file : {true, false}) {
    const auto records = source({.is_file = is_file, .count = 5'000});
    std::set<const WindowRecord*> places;
    RecordSpares spares;
    ReadRecord read;
    std::uint64_t count = 0;
    for (; *records->next(read); ++count) {
      expect_is(read, count + 1);
      places.insert(read.record.get());
      spares.add(std::move(read.record));
      records->take_spares(spares);
    }
    EXPECT_EQ(count, 5'000U);
    EXPECT_LT(places.size(), 4'000U);
  }
}

}  // namespace
}  // namespace muster
