// Runs that find somebody's own files under their names; the workers are stand_ins/zero_worker in
// echo mode.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "base/file.h"
#include "dataset/output_record.h"
#include "dataset/run_journal.h"
#include "dataset/vector_file.h"
#include "jobs/embed_fixture.h"
#include "jobs/run_output.h"

namespace muster {
namespace {

class EmbedForeignTest : public EchoEmbedFixture {
 protected:
  EmbedForeignTest() : EchoEmbedFixture("embed_foreign", 1) {
    options_.precision = Precision::Fp32;
    write_input("in.txt", "a\nb\n");
  }

  void put(const std::filesystem::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  /// No flag, --resume, --restart: each is refused with this sentence and touches nothing.
  void expect_refused(const std::string& sentence) {
    const auto before = names_and_contents();
    for (const int flag : {0, 1, 2}) {
      SCOPED_TRACE(flag);
      options_.resume = flag == 1;
      options_.restart = flag == 2;
      const auto refused = run();
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument) << refused.error().message;
      EXPECT_EQ(refused.error().message, sentence);
      EXPECT_EQ(names_and_contents(), before);
    }
    options_.resume = options_.restart = false;
  }

  std::string names_and_contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const auto name = entry.path().filename().string();
      if (entry.is_regular_file()) files[name] = *read_file(entry.path());
    }
    std::string text;
    for (const auto& [name, content] : files) text += name + ": " + content + "\n";
    return text;
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
};

TEST_F(EmbedForeignTest, VectorsWithoutARecordAreNotReplaced) {
  for (const std::string name : {"mine.jsonl", "mine.npy", "mine.safetensors"}) {
    SCOPED_TRACE(name);
    options_.out = folder_ / name;
    put(options_.out, "{\"text\":\"my own\"}\n");
    expect_refused(path(name) + ": is there, and no " + name +
                   ".run.json says that muster made it: remove it, or name another output with -o");
  }
}

TEST_F(EmbedForeignTest, AnIndexWithoutARecordIsNotReplaced) {
  put(path("out.npy.index.jsonl"), "{\"my\":\"own\"}\n");
  expect_refused(path("out.npy.index.jsonl") +
                 ": is there, and no out.npy.run.json says that muster made it: remove it, or name "
                 "another output with -o");
}

TEST_F(EmbedForeignTest, AFileOfMusterBesideItThatIsNoneIsNotReplaced) {
  for (const char* ending :
       {".run.json", ".run.json.part", ".journal", ".journal.part", ".ahead"}) {
    const auto name = std::string("out.npy") + ending;
    for (const std::string content : {"{\"my\":\"own\"}", "my own\nlines\n"}) {
      SCOPED_TRACE(name + ": " + content);
      put(path(name), content);
      expect_refused(path(name) +
                     ": is there and no file of a run of muster's: remove it, or name another "
                     "output with -o");
    }
    std::filesystem::remove(path(name));
  }
}

TEST_F(EmbedForeignTest, WhatHasLostItsRecordIsNotReplaced) {
  ASSERT_TRUE(run());
  std::filesystem::remove(record_path_of(options_.out));
  expect_refused(path("out.npy") +
                 ": is there, and no out.npy.run.json says that muster made it: remove it, or name "
                 "another output with -o");
}

// Somebody's own file under the name of an earlier output, whose record is still there.
TEST_F(EmbedForeignTest, WhatTheRecordDoesNotSpeakOfIsNotReplaced) {
  ASSERT_TRUE(run());
  for (const char* name : {"out.npy", "out.npy.index.jsonl"}) {
    SCOPED_TRACE(name);
    const auto own = *read_file(folder_ / name);
    put(path(name), "my own");
    options_.restart = true;
    const auto refused = run();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(refused.error().message,
              path(name) +
                  ": is there, and not the file that out.npy.run.json speaks of: remove "
                  "it, or name another output with -o");
    EXPECT_EQ(*read_file(folder_ / name), "my own");
    put(path(name), own);
  }
  EXPECT_TRUE(run());
}

// --resume of a finished output removes what a run that was killed early has left beside it.
TEST_F(EmbedForeignTest, AFileBesideAFinishedOutputIsNotRemoved) {
  ASSERT_TRUE(run());
  for (const char* ending : {".run.json.part", ".journal.part"}) {
    const auto name = std::string("out.npy") + ending;
    put(path(name), "my own");
    expect_refused(path(name) +
                   ": is there and no file of a run of muster's: remove it, or name another output "
                   "with -o");
    std::filesystem::remove(path(name));
  }
}

TEST_F(EmbedForeignTest, WhatMusterMadeIsReplaced) {
  for (const char* name : {"out.npy", "out.safetensors", "out.jsonl"}) {
    SCOPED_TRACE(name);
    options_.out = folder_ / name;
    options_.restart = false;
    write_input("in.txt", "a\nb\n");
    ASSERT_TRUE(run());
    for (const bool restart : {false, true}) {
      write_input("in.txt", restart ? "c\n" : "c\nd\ne\n");
      options_.restart = restart;
      const auto report = run();
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ((*VectorFile::open(options_.out))->row_count(), restart ? 1U : 3U);
    }
  }
}

// `mktemp` makes them; and a power cut can leave a file without its bytes.
TEST_F(EmbedForeignTest, AnEmptyFileIsNobodys) {
  for (const char* ending : {"", ".index.jsonl", ".run.json", ".run.json.part", ".journal.part"}) {
    put(path(std::string("out.npy") + ending), "");
  }
  put(path("out.npy.journal.part"), std::string(100, '\0'));
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*VectorFile::open(options_.out))->row_count(), 2U);
}

TEST_F(EmbedForeignTest, AFileThatCameMeanwhileIsNotReplacedByGoingOn) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "text " + std::to_string(i) + "\n";
  write_input("in.txt", lines);
  ASSERT_FALSE(run([this] { return last_.text_count > 5000; }));
  put(options_.out, "my own");
  expect_refused(path("out.npy") +
                 ": is there, and no out.npy.run.json says that muster made it: remove it, or name "
                 "another output with -o");
  std::filesystem::remove(options_.out);
  last_ = {};
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->progress.resumed_count, 0U);
}

// It would be replaced when the names are given, after hours.
TEST_F(EmbedForeignTest, AFileThatCameDuringTheRunIsNotReplaced) {
  const auto sentence = path("out.npy") +
                        ": is there, and no out.npy.run.json says that muster made it: remove it, "
                        "or name another output with -o";
  const auto refused = run([this] {
    put(options_.out, "my own");
    return false;
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            sentence + "; all records are done and only names are missing: --resume gives them");
  expect_refused(sentence);
  std::filesystem::remove(options_.out);
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->was_complete);
  EXPECT_EQ((*VectorFile::open(options_.out))->row_count(), 2U);
}

// The journal that vouches for the names that were given goes with the new run.
TEST_F(EmbedForeignTest, ARestartThatEndsEarlyLeavesAWholeOutput) {
  const RunFiles files(options_.out);
  for (int rename_count = 0; rename_count <= 3; ++rename_count) {
    SCOPED_TRACE(rename_count);
    options_.restart = false;
    ASSERT_TRUE(run());
    const auto identity = read_output_record(files.about)->identity;
    if (rename_count < 3) std::filesystem::rename(files.out, files.out_part);
    if (rename_count < 2) std::filesystem::rename(files.about, files.about_part);
    if (rename_count < 1) std::filesystem::rename(files.index, files.index_part);
    ASSERT_TRUE(RunJournal::create(files.journal, identity));
    ASSERT_TRUE(RunJournal::reopen(files.journal, identity)->journal->append_finished());
    options_.restart = true;
    ASSERT_FALSE(run([] { return true; }));
    EXPECT_EQ((*VectorFile::open(files.out))->row_count(), 2U);
    EXPECT_TRUE(check_output(*read_output_record(files.about), files.out));
    EXPECT_FALSE(std::filesystem::exists(files.journal));
  }
  options_.restart = false;
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->was_complete);
}

TEST_F(EmbedForeignTest, ARestartGoesOnWhereAPartIsGone) {
  const RunFiles files(options_.out);
  ASSERT_TRUE(run());
  const auto identity = read_output_record(files.about)->identity;
  std::filesystem::remove(files.out);
  ASSERT_TRUE(RunJournal::create(files.journal, identity));
  ASSERT_TRUE(RunJournal::reopen(files.journal, identity)->journal->append_finished());
  options_.restart = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ((*VectorFile::open(files.out))->row_count(), 2U);
}

TEST_F(EmbedForeignTest, ZerosBeforeOtherBytesAreSomebodysOwn) {
  put(path("out.npy.journal.part"), std::string(100'000, '\0') + "x");
  expect_refused(path("out.npy.journal.part") +
                 ": is there and no file of a run of muster's: remove it, or name another output "
                 "with -o");
  put(path("out.npy.journal.part"), std::string(100'000, '\0'));
  EXPECT_TRUE(run());
}

TEST_F(EmbedForeignTest, WhatCannotBeReadIsNotReplaced) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  for (const char* ending : {".journal.part", ".run.json.part", ".run.json"}) {
    const auto file = path(std::string("out.npy") + ending);
    put(file, "my own");
    std::filesystem::permissions(file, std::filesystem::perms::none);
    const auto refused = run();
    ASSERT_FALSE(refused) << file;
    EXPECT_EQ(refused.error().message, file + ": cannot open: Permission denied");
    std::filesystem::remove(file);
  }
}

TEST_F(EmbedForeignTest, ADamagedRecordIsCalledDamaged) {
  ASSERT_TRUE(run());
  const auto record = record_path_of(options_.out);
  const auto content = *read_file(record);
  put(record, content.substr(0, content.size() / 2));
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(refused.error().message, record.string() + ": not a JSON object");
}

}  // namespace
}  // namespace muster
