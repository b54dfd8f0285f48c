#include "jobs/output_conflicts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class OutputConflictsTest : public testing::Test {
 protected:
  OutputConflictsTest()
      : folder_(fs::path(testing::TempDir()) / ("conflicts." + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "model");
    write("in.jsonl");
    write("model/model.safetensors");
  }
  ~OutputConflictsTest() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name) const {
    std::ofstream(folder_ / name) << name;
    return folder_ / name;
  }

  /// The message, without the folder; empty when there is no conflict.
  std::string conflict(const std::string& out, const std::string& input) const {
    const auto checked = check_conflicts(
        RunFiles(folder_ / out), {.inputs = {input == "-" ? input : (folder_ / input).string()},
                                  .model_folder = folder_ / "model"});
    if (checked) return "";
    auto message = checked.error().message;
    const auto prefix = folder_.string() + "/";
    for (auto at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }

  const fs::path folder_;
};

TEST_F(OutputConflictsTest, OtherNamesAreFine) {
  write("x.npy");
  write("x.npy.part");
  EXPECT_EQ(conflict("x.npy", "in.jsonl"), "");
}

TEST_F(OutputConflictsTest, NoNameOfTheRunMayBeAnInput) {
  EXPECT_EQ(conflict("in.jsonl", "in.jsonl"),
            "in.jsonl would be overwritten, and it is an input (in.jsonl): name another file with "
            "-o");
  for (const char* name : {"x.npy", "x.npy.part", "x.npy.index.jsonl", "x.npy.index.jsonl.part",
                           "x.npy.run.json", "x.npy.run.json.part", "x.npy.journal",
                           "x.npy.journal.part", "x.npy.ahead", "x.npy.lock"}) {
    write(name);
    EXPECT_NE(conflict("x.npy", name), "") << name;
    fs::remove(folder_ / name);
  }
}

TEST_F(OutputConflictsTest, LinksOfEitherKindAreSeenThrough) {
  fs::create_symlink("in.jsonl", folder_ / "soft.jsonl");
  fs::create_hard_link(folder_ / "in.jsonl", folder_ / "hard.jsonl");
  fs::create_directory_symlink(folder_, folder_ / "again");
  EXPECT_NE(conflict("soft.jsonl", "in.jsonl"), "");
  EXPECT_NE(conflict("in.jsonl", "soft.jsonl"), "");
  EXPECT_NE(conflict("hard.jsonl", "in.jsonl"), "");
  EXPECT_NE(conflict("again/in.jsonl", "in.jsonl"), "");
}

TEST_F(OutputConflictsTest, StandardInputCanBeAFile) {
  const UniqueFd before(::dup(STDIN_FILENO));
  const UniqueFd file(::open((folder_ / "in.jsonl").c_str(), O_RDONLY | O_CLOEXEC));
  ::dup2(file.get(), STDIN_FILENO);
  const auto message = conflict("in.jsonl", "-");
  ::dup2(before.get(), STDIN_FILENO);
  EXPECT_NE(message.find("it is an input (standard input)"), std::string::npos) << message;
}

TEST_F(OutputConflictsTest, FilesOfTheModelAreNoOutputs) {
  EXPECT_EQ(conflict("model/model.safetensors", "in.jsonl"),
            "model/model.safetensors would be overwritten, and it is a file of the model "
            "(model/model.safetensors): name another file with -o");
  EXPECT_EQ(conflict("model/new.safetensors", "in.jsonl"), "");
}

TEST_F(OutputConflictsTest, AnOutputInTheFolderOfTheModelCanBeReplaced) {
  const RunFiles files(write("model/old.npy"));
  write("model/old.npy.index.jsonl");
  EXPECT_NE(conflict("model/old.npy", "in.jsonl"), "");
  write("model/old.npy.run.json");
  EXPECT_NE(conflict("model/old.npy", "in.jsonl"), "") << "not a record";
  ASSERT_TRUE(write_file_atomically(files.about, output_record_json({})));
  EXPECT_EQ(conflict("model/old.npy", "in.jsonl"), "") << "the output of an earlier run";
  write("model/old.npy.lock");
  EXPECT_EQ(conflict("model/old.npy", "in.jsonl"), "") << "OutputLock looks into it";

  write("model/old.npy.part");
  EXPECT_NE(conflict("model/old.npy", "in.jsonl"), "") << "the record does not speak of it";
  ASSERT_TRUE(RunJournal::create(files.journal, {{"the model", "abc"}}));
  EXPECT_EQ(conflict("model/old.npy", "in.jsonl"), "");

  fs::remove(files.about);
  EXPECT_NE(conflict("model/old.npy", "in.jsonl"), "") << "an unfinished run has no final name";
  ASSERT_TRUE(
      RunJournal::reopen(files.journal, {{"the model", "abc"}})->journal->append_finished());
  EXPECT_EQ(conflict("model/old.npy", "in.jsonl"), "");
}

TEST_F(OutputConflictsTest, AFolderAndTheNameOfAnIndexAreNoOutputs) {
  fs::create_directories(folder_ / "x.npy");
  EXPECT_NE(conflict("x.npy", "in.jsonl"), "");
  EXPECT_NE(conflict("y.npy.index.jsonl", "in.jsonl"), "");
  EXPECT_EQ(conflict("none/y.npy", "in.jsonl"), "no such folder for the output: none");
}

TEST_F(OutputConflictsTest, AFolderWhereNothingCanBeWrittenIsRefused) {
  // Elsewhere it depends on the user.
  if (::access("/proc/self", W_OK) == 0) GTEST_SKIP() << "this system lets /proc/self be written";
  const auto refused = check_conflicts(RunFiles("/proc/self/x.npy"), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_TRUE(refused.error().message.starts_with(
      "/proc/self/x.npy: no output can be written into its folder: "))
      << refused.error().message;
}

}  // namespace
}  // namespace muster
