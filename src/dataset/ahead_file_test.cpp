#include "dataset/ahead_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/full_disk_fixture.h"
#include "base/hash.h"
#include "dataset/folder_fixture.h"
#include "dataset/memory_source.h"
#include "dataset/run_journal.h"

namespace muster {
namespace {

// A row of two values: 8 + 32 + 4 + 4 + 2 * 4 + 8 bytes.
constexpr std::size_t kSlotSize = 64;

std::string text_of(std::uint64_t record) { return fmt::format("text {}", record); }

std::array<float, 2> values_of(std::uint64_t record) { return {static_cast<float>(record), -0.5F}; }

class AheadFileTest : public FolderTest {
 protected:
  std::filesystem::path path() const { return folder_ / "x.npy.ahead"; }

  static Status put(AheadFile& file, std::uint64_t record) {
    return file.put({.record = record,
                     .text = text_of(record),
                     .token_count = static_cast<std::uint32_t>(10 + record),
                     .is_truncated = record % 2 == 1},
                    values_of(record));
  }

  /// A file with the rows of these records, in this order.
  void make(std::initializer_list<std::uint64_t> records) const {
    std::filesystem::remove(path());
    AheadFile file(path(), run_);
    for (const auto record : records) ASSERT_TRUE(put(file, record));
    ASSERT_TRUE(file.sync());
  }

  std::unique_ptr<AheadFile> reopen(std::uint64_t record_count = 0) const {
    auto file = AheadFile::reopen(path(), run_, record_count);
    EXPECT_TRUE(file) << file.error().message;
    return *std::move(file);
  }

  static void expect_row(AheadFile& file, std::uint64_t record) {
    const auto row = file.find(record, text_of(record));
    ASSERT_TRUE(row) << record;
    EXPECT_EQ(row->record, record);
    EXPECT_EQ(row->token_count, 10 + record);
    EXPECT_EQ(row->is_truncated, record % 2 == 1);
    EXPECT_EQ(row->values, (std::vector<float>{static_cast<float>(record), -0.5F}));
  }

  std::uint64_t size() const { return std::filesystem::file_size(path()); }

  const std::string run_ = identity_hash({{"the model", "abc"}});
};

TEST_F(AheadFileTest, RowsComeBackAsTheyWerePut) {
  make({7, 3, 9});
  const auto file = reopen();
  EXPECT_EQ(file->dim(), 2U);
  for (const std::uint64_t record : {3U, 7U, 9U}) {
    EXPECT_TRUE(file->has(record));
    expect_row(*file, record);
  }
  EXPECT_FALSE(file->has(4));
  EXPECT_FALSE(file->find(4, text_of(4)));
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 3U);
  EXPECT_EQ(*count_ahead_rows(path(), run_, 7), 2U);
}

TEST_F(AheadFileTest, TheBytesAreThoseOfTheFormat) {
  make({3});
  const auto bytes = read("x.npy.ahead");
  ASSERT_EQ(bytes.size(), 56U + kSlotSize);
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  const auto sum = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  EXPECT_EQ(bytes.substr(0, 8), "MSTAHEAD");
  EXPECT_EQ(number(8), 1U);
  EXPECT_EQ(number(12), 2U);
  EXPECT_EQ(bytes.substr(16, 32), run_);
  EXPECT_EQ(sum(48), hash64(bytes.substr(0, 48)));
  EXPECT_EQ(number(56), 3U);
  EXPECT_EQ(bytes.substr(64, 32), hash_hex("text 3"));
  EXPECT_EQ(number(96), 13U);
  EXPECT_EQ(number(100), 1U);
  EXPECT_EQ(number(104), 0x40400000U);  // 3.0
  EXPECT_EQ(number(108), 0xBF000000U);  // -0.5
  EXPECT_EQ(sum(112), hash64(run_ + bytes.substr(56, 56)));
}

TEST_F(AheadFileTest, ThereIsNoFileBeforeTheFirstRow) {
  AheadFile file(path(), run_);
  ASSERT_TRUE(file.sync());
  ASSERT_TRUE(file.drop_before(5));
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(file.dim(), 0U);
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 0U);
  EXPECT_EQ(reopen()->dim(), 0U);
}

TEST_F(AheadFileTest, OnlyWhatIsSyncedCounts) {
  AheadFile file(path(), run_);
  ASSERT_TRUE(put(file, 1));
  EXPECT_EQ(file.durable_count(), 0U);
  ASSERT_TRUE(file.sync());
  ASSERT_TRUE(put(file, 2));
  EXPECT_EQ(file.durable_count(), 1U);
  EXPECT_EQ(reopen()->durable_count(), 2U) << "there after all";
}

TEST_F(AheadFileTest, ATornTailIsDroppedWhereverItIsTorn) {
  make({4, 2, 6});
  const auto whole = read("x.npy.ahead");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    write("x.npy.ahead", whole.substr(0, length));
    const std::size_t row_count = length < 56 ? 0 : (length - 56) / kSlotSize;
    EXPECT_EQ(*count_ahead_rows(path(), run_, 0), row_count);
    auto file = reopen();
    EXPECT_EQ(file->has(4), row_count > 0);
    EXPECT_EQ(file->has(2), row_count > 1);
    EXPECT_FALSE(file->has(6));
    for (const std::uint64_t record : {4U, 2U, 6U}) {
      if (file->has(record)) continue;
      ASSERT_TRUE(put(*file, record));
    }
    ASSERT_TRUE(file->sync());
    EXPECT_TRUE(read("x.npy.ahead") == whole);
  }
}

TEST_F(AheadFileTest, AChangedByteCostsItsRowAlone) {
  make({4, 2, 6});
  const auto whole = read("x.npy.ahead");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    SCOPED_TRACE(at);
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write("x.npy.ahead", changed);
    if (at < 8) {  // no longer the name of the format
      EXPECT_EQ(count_ahead_rows(path(), run_, 0).error().kind, ErrorKind::InvalidArgument);
      continue;
    }
    EXPECT_EQ(*count_ahead_rows(path(), run_, 0), at < 56 ? 0U : 2U);
    if (at < 56) continue;
    const auto file = reopen();
    const std::array<std::uint64_t, 3> records{4, 2, 6};
    for (std::size_t slot = 0; slot < records.size(); ++slot) {
      EXPECT_EQ(file->has(records[slot]), slot != (at - 56) / kSlotSize);
    }
  }
}

// A file may have become longer and not have got its bytes.
TEST_F(AheadFileTest, ZerosAreNoRow) {
  make({4});
  const auto whole = read("x.npy.ahead");
  write("x.npy.ahead", whole + std::string(2 * kSlotSize, '\0'));
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 1U);
  write("x.npy.ahead", std::string(whole.size(), '\0'));
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 0U);
}

TEST_F(AheadFileTest, RowsOfAnotherRunCountForNothingAndAreReplaced) {
  make({4, 2});
  const auto other = identity_hash({{"the model", "other"}});
  EXPECT_EQ(*count_ahead_rows(path(), other, 0), 0U);
  auto file = AheadFile::reopen(path(), other, 0);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE((*file)->has(4));
  ASSERT_TRUE(put(**file, 5));
  ASSERT_TRUE((*file)->sync());
  EXPECT_EQ(size(), 56 + kSlotSize);
  EXPECT_EQ(*count_ahead_rows(path(), other, 0), 1U);
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 0U);
}

// A disk may give a file that grew what another had there.
TEST_F(AheadFileTest, ASlotOfAnotherRunIsNoRow) {
  make({4});
  const auto head = read("x.npy.ahead").substr(0, 56);
  const auto other = identity_hash({{"the model", "other"}});
  {
    AheadFile file(path(), other);
    ASSERT_TRUE(put(file, 4));
  }
  write("x.npy.ahead", head + read("x.npy.ahead").substr(56));
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 0U);
}

TEST_F(AheadFileTest, AFileOfSomethingElseIsRefusedAndLeftAlone) {
  write("x.npy.ahead", "my notes");
  const auto refused = AheadFile::reopen(path(), run_, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            path().string() +
                ": is there and no file of a run of muster's: remove it, or name "
                "another output with -o");
  EXPECT_EQ(read("x.npy.ahead"), "my notes");
}

TEST_F(AheadFileTest, AnotherVersionIsRefused) {
  auto header = ahead_header(run_, 2).substr(0, 48);
  header[8] = 2;
  const auto sum = hash64(header);
  header.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  write("x.npy.ahead", header);
  EXPECT_EQ(count_ahead_rows(path(), run_, 0).error().kind, ErrorKind::Unsupported);
}

TEST_F(AheadFileTest, AHeadThatClaimsAbsurdRowsCountsForNothing) {
  for (const std::uint32_t dim : {0U, kAheadDimMost + 1, 0xFFFFFFFFU}) {
    write("x.npy.ahead", ahead_header(run_, dim) + std::string(1000, 'x'));
    EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 0U) << dim;
  }
}

TEST_F(AheadFileTest, ARowThatIsNotFiniteIsNone) {
  AheadFile file(path(), run_);
  ASSERT_TRUE(file.put({.record = 1, .text = "a"},
                       std::array{1.0F, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 0U);
}

TEST_F(AheadFileTest, ARowBelongsToItsText) {
  make({4, 2});
  {
    const auto file = reopen();
    EXPECT_FALSE(file->find(4, "another text"));
    EXPECT_FALSE(file->has(4)) << "it is to be computed and put again";
    ASSERT_TRUE(file->put({.record = 4, .text = "another text"}, values_of(40)));
    ASSERT_TRUE(file->sync());
  }
  EXPECT_EQ(size(), 56 + 2 * kSlotSize) << "in the place that has become free";
  const auto row = reopen()->find(4, "another text");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->values[0], 40.0F);
}

// The place of a text that has changed was not used again before the end.
TEST_F(AheadFileTest, OfTwoRowsOfARecordTheOneOfItsTextIsFound) {
  make({4});
  const auto first = read("x.npy.ahead");
  {
    AheadFile file(path(), run_);
    ASSERT_TRUE(file.put({.record = 4, .text = "another text"}, values_of(40)));
  }
  write("x.npy.ahead", first + read("x.npy.ahead").substr(56));
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 1U);
  EXPECT_EQ(reopen()->durable_count(), 1U);
  expect_row(*reopen(), 4);
  const auto file = reopen();
  const auto row = file->find(4, "another text");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->values[0], 40.0F);
  EXPECT_TRUE(file->has(4));
  EXPECT_FALSE(file->find(4, text_of(4))) << "dropped with the look for the other";
}

TEST_F(AheadFileTest, TheSameRowTwiceIsOne) {
  make({4, 2, 6});
  const auto whole = read("x.npy.ahead");
  write("x.npy.ahead", whole + whole.substr(56, kSlotSize));
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 3U);
  const auto file = reopen();
  expect_row(*file, 4);
  ASSERT_TRUE(put(*file, 8));
  EXPECT_EQ(size(), whole.size() + kSlotSize) << "over the second of them";
  expect_row(*file, 4);
}

TEST_F(AheadFileTest, PlacesOfWrittenRowsAreUsedAgain) {
  AheadFile file(path(), run_);
  for (std::uint64_t record = 1; record < 100; ++record) {
    ASSERT_TRUE(put(file, record));
    ASSERT_TRUE(put(file, record + 100));
    ASSERT_TRUE(file.sync());
    EXPECT_LE(size(), 56 + (record + 1) * kSlotSize);
    ASSERT_TRUE(file.drop_before(record + 1));
    EXPECT_FALSE(file.has(record));
    EXPECT_EQ(file.durable_count(), record);
  }
  const auto reopened = reopen(100);
  for (std::uint64_t record = 101; record < 200; ++record) expect_row(*reopened, record);
}

TEST_F(AheadFileTest, IsCutToItsHeadWhenNoRowIsAhead) {
  AheadFile file(path(), run_);
  for (const std::uint64_t record : {3U, 4U, 5U}) ASSERT_TRUE(put(file, record));
  ASSERT_TRUE(file.sync());
  ASSERT_TRUE(file.drop_before(6));
  EXPECT_EQ(size(), 56U);
  ASSERT_TRUE(put(file, 9));
  ASSERT_TRUE(file.sync());
  EXPECT_EQ(size(), 56 + kSlotSize);
  expect_row(*reopen(), 9);
}

TEST_F(AheadFileTest, RowsThatTheJournalHasAreNotFoundAgain) {
  make({4, 2, 6});
  const auto file = reopen(5);
  EXPECT_FALSE(file->has(4));
  EXPECT_FALSE(file->has(2));
  ASSERT_TRUE(put(*file, 7));
  ASSERT_TRUE(put(*file, 8));
  EXPECT_EQ(size(), 56 + 3 * kSlotSize);
  expect_row(*file, 6);
}

TEST_F(AheadFileTest, AFullDiskIsOneSentenceAndTheRowsBeforeItStay) {
  AheadFile file(path(), run_);
  ASSERT_TRUE(put(file, 1));
  std::optional<FullDisk> disk(std::in_place, 56 + kSlotSize + 10);
  const auto refused = put(file, 2);
  const auto synced = file.sync();
  disk.reset();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(refused.error().message, path().string() + ": cannot write: File too large");
  EXPECT_TRUE(synced);
  EXPECT_EQ(file.durable_count(), 1U);
  EXPECT_FALSE(file.has(2));
  expect_row(*reopen(), 1);
  ASSERT_TRUE(put(file, 3));  // there is room again
  ASSERT_TRUE(file.sync());
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 2U);
}

// What was begun there is no file, and the next row makes it anew.
TEST_F(AheadFileTest, AFullDiskAtTheHeadLeavesNothingThatCounts) {
  AheadFile file(path(), run_);
  std::optional<FullDisk> disk(std::in_place, 20);
  const auto refused = put(file, 1);
  const auto synced = file.sync();
  disk.reset();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_TRUE(synced);
  EXPECT_EQ(file.dim(), 0U);
  EXPECT_EQ(size(), 20U);
  EXPECT_EQ(*count_ahead_rows(path(), run_, 0), 0U);
  EXPECT_EQ(reopen()->dim(), 0U);
  ASSERT_TRUE(put(file, 2));
  ASSERT_TRUE(file.sync());
  EXPECT_EQ(size(), 56 + kSlotSize);
  expect_row(*reopen(), 2);
}

TEST_F(AheadFileTest, NoLinkIsWrittenThrough) {
  write("precious", "precious");
  std::filesystem::create_symlink("precious", path());
  AheadFile file(path(), run_);
  const auto refused = put(file, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(read("precious"), "precious");
}

TEST_F(AheadFileTest, WhereAReadEndsDoesNotMatter) {
  make({4, 2, 6});
  const auto whole = read("x.npy.ahead");
  for (const std::size_t read_size : {1U, 7U, 64U, 1000U}) {
    MemorySource source(whole, read_size);
    const auto content = read_ahead(source, "memory");
    ASSERT_TRUE(content && *content);
    EXPECT_EQ((*content)->entries.size(), 3U);
    EXPECT_EQ((*content)->entries[1].record, 2U);
    EXPECT_EQ((*content)->entries[1].slot, 1U);
  }
}

TEST(IdentityHash, IsTheSameForWhatAJournalGivesBackAndForNothingElse) {
  const RunIdentity identity{{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(identity_hash(identity).size(), 32U);
  EXPECT_EQ(identity_hash(identity), identity_hash({{"b", "2"}, {"a", "1"}}));
  EXPECT_NE(identity_hash(identity), identity_hash({{"a", "2"}, {"b", "1"}}));
  EXPECT_NE(identity_hash(identity), identity_hash({{"a", "1"}}));
  // Bytes that are not UTF-8 are replaced in a journal.
  EXPECT_EQ(identity_hash({{"input", "caf\xe9.txt"}}),
            identity_hash({{"input", "caf\xef\xbf\xbd.txt"}}));
}

}  // namespace
}  // namespace muster
