#include "dataset/run_journal.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "dataset/folder_fixture.h"

namespace muster {
namespace {

const RunIdentity kIdentity{{"model", "abc"}, {"--max-length", "256"}};

RunStep step(std::uint64_t number) {
  return {.record_count = 10 * number,
          .row_count = 9 * number,
          .vectors_size = 100 * number,
          .index_size = 50 * number,
          .records_hash = fmt::format("r{}", number),
          .vectors_hash = fmt::format("v{}", number),
          .index_hash = fmt::format("i{}", number)};
}

class RunJournalTest : public FolderTest {
 protected:
  std::filesystem::path path() const { return folder_ / "out.npy.journal"; }

  void make(std::uint64_t step_count) {
    auto journal = RunJournal::create(path(), kIdentity);
    ASSERT_TRUE(journal);
    for (std::uint64_t i = 1; i <= step_count; ++i) ASSERT_TRUE((*journal)->append(step(i)));
  }

  std::size_t step_count() const { return RunJournal::reopen(path(), kIdentity)->steps.size(); }
};

TEST_F(RunJournalTest, StepsComeBackAsTheyWereAppended) {
  make(2);
  const auto reopened = RunJournal::reopen(path(), kIdentity);
  ASSERT_TRUE(reopened);
  ASSERT_EQ(reopened->steps.size(), 2U);
  const auto& second = reopened->steps[1];
  EXPECT_EQ(second.record_count, 20U);
  EXPECT_EQ(second.row_count, 18U);
  EXPECT_EQ(second.vectors_size, 200U);
  EXPECT_EQ(second.index_size, 100U);
  EXPECT_EQ(second.records_hash, "r2");
  EXPECT_EQ(second.vectors_hash, "v2");
  EXPECT_EQ(second.index_hash, "i2");
}

TEST_F(RunJournalTest, AReopenedJournalGoesOn) {
  make(1);
  ASSERT_TRUE(RunJournal::reopen(path(), kIdentity)->journal->append(step(2)));
  EXPECT_EQ(step_count(), 2U);
}

TEST_F(RunJournalTest, TheLastLineSaysThatThePartsAreWhole) {
  make(2);
  EXPECT_FALSE(RunJournal::read(path())->is_finished);
  ASSERT_TRUE(RunJournal::reopen(path(), kIdentity)->journal->append_finished());
  const auto content = RunJournal::read(path());
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_TRUE(content->is_finished);
  EXPECT_EQ(content->steps.size(), 2U);
  EXPECT_EQ(content->identity, kIdentity);
}

TEST_F(RunJournalTest, AnotherVersionIsRefused) {
  const std::string line = R"({"muster_run":1,"identity":[])";
  write("out.npy.journal", fmt::format("{},\"sum\":\"{:016x}\"}}\n", line, hash64(line)));
  const auto refused = RunJournal::read(path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
}

TEST_F(RunJournalTest, ATornLastLineIsDroppedWhereverItIsTorn) {
  make(2);
  const auto whole = read("out.npy.journal");
  make(1);
  const auto first = read("out.npy.journal").size();
  for (std::size_t size = first; size < whole.size(); ++size) {
    write("out.npy.journal", whole.substr(0, size));
    auto reopened = RunJournal::reopen(path(), kIdentity);
    ASSERT_TRUE(reopened);
    EXPECT_EQ(reopened->steps.size(), 1U);
    ASSERT_TRUE(reopened->journal->append(step(2)));
    EXPECT_EQ(read("out.npy.journal"), whole);
  }
}

TEST_F(RunJournalTest, AChangedByteInTheMiddleIsCorruptAndInTheLastLineDropsIt) {
  make(3);
  const auto whole = read("out.npy.journal");
  const auto second_line = whole.find('\n') + 1;
  for (std::size_t at = 0; at + 1 < whole.size(); ++at) {
    if (whole[at] == '\n') continue;
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write("out.npy.journal", changed);
    const auto reopened = RunJournal::reopen(path(), kIdentity);
    if (at > whole.rfind('\n', whole.size() - 2)) {
      ASSERT_TRUE(reopened);
      EXPECT_EQ(reopened->steps.size(), 2U);
    } else {
      ASSERT_FALSE(reopened);
      EXPECT_EQ(reopened.error().kind, ErrorKind::Corrupt);
      EXPECT_NE(reopened.error().message.find(at < second_line ? ".journal:1: " : ".journal:"),
                std::string::npos);
    }
  }
}

TEST_F(RunJournalTest, ADifferentIdentityIsRefusedByNameWithBothValues) {
  make(1);
  const auto refusal = [&](const RunIdentity& identity) {
    const auto reopened = RunJournal::reopen(path(), identity);
    EXPECT_FALSE(reopened);
    EXPECT_EQ(reopened.error().kind, ErrorKind::InvalidArgument);
    return reopened.error().message;
  };
  EXPECT_EQ(refusal({{"model", "abc"}, {"--max-length", "128"}}),
            "cannot resume out.npy.journal: --max-length was 256 and is now 128");
  EXPECT_EQ(refusal({{"model", "abc"}, {"--max-length", "256"}, {"--prompt", "q"}}),
            "cannot resume out.npy.journal: --prompt was not set and is now q");
  EXPECT_EQ(refusal({{"--max-length", "256"}}),
            "cannot resume out.npy.journal: model was abc and is now not set");
}

TEST_F(RunJournalTest, AnIdentityThatIsNotUtf8EqualsItself) {
  const RunIdentity odd{{"input", "caf\xe9.txt"}};
  ASSERT_TRUE(RunJournal::create(path(), odd));
  EXPECT_TRUE(RunJournal::reopen(path(), odd));
}

TEST_F(RunJournalTest, TruncateKeepsTheFirstSteps) {
  make(3);
  {
    auto reopened = RunJournal::reopen(path(), kIdentity);
    ASSERT_TRUE(reopened->journal->truncate(1));
    ASSERT_TRUE(reopened->journal->append(step(7)));
  }
  const auto steps = RunJournal::reopen(path(), kIdentity)->steps;
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].records_hash, "r1");
  EXPECT_EQ(steps[1].records_hash, "r7");
}

TEST_F(RunJournalTest, NoJournalAndAnEmptyOneAreNotFound) {
  EXPECT_EQ(RunJournal::reopen(path(), kIdentity).error().kind, ErrorKind::NotFound);
  write("out.npy.journal", "");
  EXPECT_EQ(RunJournal::reopen(path(), kIdentity).error().kind, ErrorKind::NotFound);
}

TEST_F(RunJournalTest, CreateReplacesAnOldJournal) {
  make(3);
  make(0);
  EXPECT_EQ(step_count(), 0U);
}

TEST_F(RunJournalTest, StepsCountAsLongAsThePartFilesHoldThem) {
  const RunParts parts{.vectors = folder_ / "v", .vectors_header_size = 4, .index = folder_ / "i"};
  const std::vector<RunStep> steps{{.vectors_size = 7,
                                    .index_size = 2,
                                    .vectors_hash = hash_hex("abc"),
                                    .index_hash = hash_hex("xy")},
                                   {.vectors_size = 9,
                                    .index_size = 3,
                                    .vectors_hash = hash_hex("de"),
                                    .index_hash = hash_hex("z")}};
  EXPECT_EQ(*count_intact_steps({}, parts), 0U);
  write("i", "xyz and more");
  write("v", "HEADabcde and more");
  EXPECT_EQ(*count_intact_steps(steps, parts), 2U);
  write("v", "headabcde");
  EXPECT_EQ(*count_intact_steps(steps, parts), 2U) << "the header is not covered";
  write("v", "HEADabcd");
  EXPECT_EQ(*count_intact_steps(steps, parts), 1U) << "cut inside the second step";
  write("v", "HEADabcDE");
  EXPECT_EQ(*count_intact_steps(steps, parts), 1U) << "other bytes in the second step";
  write("i", "xY");
  EXPECT_EQ(*count_intact_steps(steps, parts), 0U);
  std::filesystem::remove(folder_ / "i");
  EXPECT_EQ(count_intact_steps(steps, parts).error().kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
