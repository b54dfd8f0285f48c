#include "sweep/point_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

namespace muster {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kA = "000000000000000a";
constexpr const char* kB = "000000000000000b";

KeptPoint point_of(const std::string& id, bool is_valid = true) {
  Json record{{"point", id}, {"timestamp", "t"}, {"valid", is_valid}};
  record["config"] = {{"name", "n"}};
  record["gpu_stats"] = Json::object();
  return {.id = id, .is_valid = is_valid, .record = record};
}

// As a result of the instrument is: its version first, its samples last.
std::string result_of(const KeptPoint& point) {
  const Json json{{"schema_version", 1},
                  {"tool", {{"name", "muster bench"}}},
                  {"run", point.record},
                  {"points", {{{"trials", {{{"samples", {1, 2, 3}}}}}}}}};
  return json.dump() + "\n";
}

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class PointStoreTest : public ::testing::Test {
 protected:
  PointStoreTest()
      : folder_(fs::path(::testing::TempDir()) / ("point_store_" + std::to_string(::getpid()))),
        files_{.table = folder_ / "r/x.csv", .folder = folder_ / "r/x.points"} {
    fs::create_directories(folder_ / "r");
  }
  ~PointStoreTest() override { fs::remove_all(folder_); }

  PointStore open() {
    auto store = PointStore::open(files_);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }

  fs::path file_of(const std::string& id) const { return files_.folder / (id + ".json"); }

  const fs::path folder_;
  SweepFiles files_;
};

TEST_F(PointStoreTest, KeepsPointsOneByOne) {
  auto store = open();
  EXPECT_FALSE(*store.find(kA));
  EXPECT_TRUE(fs::is_empty(folder_ / "r")) << "looking makes nothing";
  ASSERT_TRUE(store.begin());
  const auto point = point_of(kA);
  ASSERT_TRUE(store.keep(result_of(point), point));
  EXPECT_EQ(read(file_of(kA)), result_of(point));
  EXPECT_EQ(read(files_.table), "point,timestamp,valid,config_name\n000000000000000a,t,true,n\n");
  ASSERT_TRUE(store.keep(result_of(point_of(kB, false)), point_of(kB, false)));
  const auto again = open();
  EXPECT_EQ(again.table().points(), (std::vector<std::string>{kA, kB}));
  const auto found = again.find(kB);
  ASSERT_TRUE(found && *found);
  EXPECT_FALSE((*found)->is_valid);
  EXPECT_EQ((*found)->record, point_of(kB, false).record);
}

// Killed between the point and the table: the row is put in from the point's file.
TEST_F(PointStoreTest, PutsInARowThatIsMissing) {
  auto store = open();
  ASSERT_TRUE(store.begin());
  ASSERT_TRUE(store.keep(result_of(point_of(kA)), point_of(kA)));
  std::ofstream(file_of(kB)) << result_of(point_of(kB));
  auto again = open();
  EXPECT_EQ(again.table().points(), std::vector<std::string>{kA});
  ASSERT_TRUE(again.complete({**again.find(kA), **again.find(kB)}));
  EXPECT_EQ(open().table().points(), (std::vector<std::string>{kA, kB}));
}

// Whatever ends it in between: here something of a point's name that cannot be read.
TEST_F(PointStoreTest, DropsNoPointBeforeItsRow) {
  auto store = open();
  ASSERT_TRUE(store.begin());
  ASSERT_TRUE(store.keep(result_of(point_of(kA)), point_of(kA)));
  fs::create_directory(file_of(kB));
  EXPECT_FALSE(store.drop());
  EXPECT_FALSE(fs::exists(files_.table));
  EXPECT_EQ(store.table().row_count(), 0U);
}

// Killed there when it measured a point again: the row is not left with what was measured before.
TEST_F(PointStoreTest, BringsARowUpToDate) {
  auto store = open();
  ASSERT_TRUE(store.begin());
  ASSERT_TRUE(store.keep(result_of(point_of(kA, false)), point_of(kA, false)));
  std::ofstream(file_of(kA)) << result_of(point_of(kA));
  auto again = open();
  ASSERT_TRUE(again.complete({**again.find(kA)}));
  EXPECT_EQ(open().table().cell(0, "valid"), "true");
  EXPECT_EQ(open().table().row_count(), 1U);
  // What somebody has added stays where nothing was measured since.
  std::ofstream(files_.table) << "point,timestamp,valid,config_name,remark\n"
                              << kA << ",t,true,n,mine\n";
  auto edited = open();
  ASSERT_TRUE(edited.complete({point_of(kA)}));
  EXPECT_EQ(open().table().cell(0, "remark"), "mine");
}

// No byte of what was finished is lost where there is no room for more, and no half is left.
TEST_F(PointStoreTest, KeepsWhatIsFinishedWhenTheDiskIsFull) {
  auto store = open();
  ASSERT_TRUE(store.begin());
  ASSERT_TRUE(store.keep(result_of(point_of(kA)), point_of(kA)));
  const auto table = read(files_.table);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit small{.rlim_cur = 4, .rlim_max = usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto kept = store.keep(result_of(point_of(kB)), point_of(kB));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(read(files_.table), table);
  EXPECT_EQ(read(file_of(kA)), result_of(point_of(kA)));
  EXPECT_EQ(std::distance(fs::directory_iterator(files_.folder), fs::directory_iterator()), 2)
      << "the point, and whose it is";
  EXPECT_FALSE(*open().find(kB));
}

// Killed while it wrote: the halves are gone when the next run begins, and nothing else is.
TEST_F(PointStoreTest, RemovesWhatAKillHasLeftHalfWritten) {
  const auto half = [](const fs::path& file) {
    std::ofstream(file.string() + ".0123456789abcdef.tmp") << "half";
  };
  auto store = open();
  ASSERT_TRUE(store.begin());
  half(file_of(kA));
  half(files_.table);
  half(files_.folder / ".table");
  half(files_.folder / "notes");
  std::ofstream(folder_ / "r/x.csv.mine.tmp") << "mine";
  ASSERT_TRUE(open().begin());
  EXPECT_EQ(std::distance(fs::directory_iterator(files_.folder), fs::directory_iterator()), 2)
      << "the notes, and whose points they are";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "r"), fs::directory_iterator()), 2);
}

TEST_F(PointStoreTest, SaysBeforeThatNothingCanBePutIntoTheFolder) {
  std::ofstream(folder_ / "file") << "mine";
  files_.folder = folder_ / "file" / "points";
  const auto begun = open().begin();
  ASSERT_FALSE(begun);
  EXPECT_NE(begun.error().message.find(files_.folder.string()), std::string::npos);
}

TEST_F(PointStoreTest, DropsAllThatIsItsOwn) {
  auto store = open();
  ASSERT_TRUE(store.begin());
  ASSERT_TRUE(store.keep(result_of(point_of(kA)), point_of(kA)));
  std::ofstream(file_of(kB)) << result_of(point_of(kB));  // without a row
  std::ofstream(files_.folder / "notes.json") << "mine";
  std::ofstream(file_of("000000000000000c")) << "mine, too";
  ASSERT_TRUE(store.drop());
  EXPECT_FALSE(fs::exists(files_.table));
  EXPECT_FALSE(fs::exists(file_of(kA)));
  EXPECT_FALSE(fs::exists(file_of(kB)));
  EXPECT_EQ(read(files_.folder / "notes.json"), "mine");
  EXPECT_EQ(read(file_of("000000000000000c")), "mine, too");
  EXPECT_EQ(std::distance(fs::directory_iterator(files_.folder), fs::directory_iterator()), 3);
  EXPECT_EQ(store.table().row_count(), 0U);
  EXPECT_TRUE(store.drop()) << "nothing there is nothing to do";
}

// The table lies elsewhere, and has another name there.
TEST_F(PointStoreTest, FollowsALinkToItsTable) {
  fs::create_directories(folder_ / "s");
  const auto real = folder_ / "s/real.csv";
  std::ofstream(real.string()) << "";
  fs::create_symlink(real, files_.table);
  std::ofstream(real.string() + ".0123456789abcdef.tmp") << "half";
  auto store = open();
  ASSERT_TRUE(store.begin());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "s"), fs::directory_iterator()), 1)
      << "what a kill has left half-written is gone";
  ASSERT_TRUE(store.keep(result_of(point_of(kA)), point_of(kA)));
  ASSERT_TRUE(store.drop());
  EXPECT_TRUE(fs::is_symlink(files_.table));
  EXPECT_EQ(read(real), "");
  EXPECT_FALSE(fs::exists(file_of(kA)));
  ASSERT_TRUE(store.keep(result_of(point_of(kB)), point_of(kB)));
  EXPECT_EQ(read(real), "point,timestamp,valid,config_name\n000000000000000b,t,true,n\n");
  EXPECT_EQ(open().table().points(), std::vector<std::string>{kB});
}

// As of two tables of one name with one output_dir.
TEST_F(PointStoreTest, HasAFolderForOneTableAlone) {
  auto store = open();
  ASSERT_TRUE(store.begin());
  ASSERT_TRUE(store.keep(result_of(point_of(kA)), point_of(kA)));
  fs::create_directories(folder_ / "s");
  const auto taken = PointStore::open({.table = folder_ / "s/x.csv", .folder = files_.folder});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message,
            files_.folder.string() + " has the points of " + files_.table.string() +
                ": name another table by reporter.output_file, or another folder by output_dir");
  EXPECT_TRUE(PointStore::open({.table = folder_ / "s/../r/x.csv", .folder = files_.folder}));
}

TEST_F(PointStoreTest, GoesWithItsTableToAnyPlace) {
  auto store = open();
  ASSERT_TRUE(store.begin());
  ASSERT_TRUE(store.keep(result_of(point_of(kA)), point_of(kA)));
  fs::copy(folder_ / "r", folder_ / "copy", fs::copy_options::recursive);
  EXPECT_TRUE(
      PointStore::open({.table = folder_ / "copy/x.csv", .folder = folder_ / "copy/x.points"}));
  fs::rename(files_.table, folder_ / "r/y.csv");
  auto moved = PointStore::open({.table = folder_ / "r/y.csv", .folder = files_.folder});
  ASSERT_TRUE(moved) << "nothing has the old name any more";
  ASSERT_TRUE(moved->begin());
  std::ofstream(files_.table) << "point,timestamp,valid,\n";
  EXPECT_FALSE(PointStore::open(files_)) << "the folder is the other one's now";
}

// Here a link that leads to itself; it may as well lie on a share that is away, or in a folder of
// somebody else.
TEST_F(PointStoreTest, ATableThatCannotBeLookedAtIsNotGone) {
  fs::create_directories(folder_ / "s");
  const SweepFiles other{.table = folder_ / "s/x.csv", .folder = files_.folder};
  auto store = PointStore::open(other);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->begin());
  EXPECT_TRUE(PointStore::open(files_)) << "the other table was never written";
  fs::create_symlink("x.csv", other.table);
  const auto taken = PointStore::open(files_);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find(" has the points of "), std::string::npos)
      << taken.error().message;
}

TEST_F(PointStoreTest, WritesOverNoNoteOfOthers) {
  fs::create_directories(files_.folder);
  for (const std::string note : {"mine\n", "points of muster bench run: \n"}) {
    std::ofstream(files_.folder / ".table") << note;
    const auto foreign = PointStore::open(files_);
    ASSERT_FALSE(foreign) << note;
    EXPECT_EQ(foreign.error().message,
              (files_.folder / ".table").string() +
                  ": that is no note of muster bench run, and it would be overwritten: remove it");
  }
}

TEST_F(PointStoreTest, WritesOverNothingOfOthers) {
  fs::create_directories(files_.folder);
  std::ofstream(files_.table) << "my,own\n1,2\n";
  const auto foreign = PointStore::open(files_);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().message, files_.table.string() +
                                         ": that is no table of muster bench run, and it would be "
                                         "overwritten: remove it, or name another file");
  fs::remove(files_.table);
  std::ofstream(file_of(kA)) << "{\"run\":{\"point\":\"another\",\"valid\":true}}";
  const auto found = open().find(kA);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            file_of(kA).string() +
                ": that is no point of muster bench run, and it would be overwritten: remove it");
}

// Of which there are no bytes until somebody writes them: nobody waits for that.
TEST_F(PointStoreTest, WaitsForNoPipe) {
  ASSERT_EQ(::mkfifo(files_.table.c_str(), 0600), 0);
  const auto table = PointStore::open(files_);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().kind, ErrorKind::InvalidArgument);
  EXPECT_TRUE(table.error().message.starts_with(files_.table.string() + ":"))
      << table.error().message;
  fs::remove(files_.table);
  fs::create_directories(files_.folder);
  ASSERT_EQ(::mkfifo(file_of(kA).c_str(), 0600), 0);
  EXPECT_FALSE(open().find(kA));
}

TEST(SweepFilesOf, FollowFromTheFile) {
  const auto files_of = [](const std::string& more) {
    return sweep_files(*SweepConfig::read("backend: {model: m}\n" + more, "b.yaml", {}));
  };
  EXPECT_EQ(files_of("").table, "./results/benchmark_results.csv");
  const auto usual = files_of("reporter: {output_file: a/x.csv}\n");
  EXPECT_EQ(usual.folder, "a/x.points");
  const auto named = files_of("output_dir: o\nreporter: {output_file: a/x.csv}\n");
  EXPECT_EQ(named.table, "a/x.csv");
  EXPECT_EQ(named.folder, "o/x.points");
}

TEST(ReadKeptPoint, SaysWhatIsMissing) {
  const auto refusal = [](const std::string& text) {
    return read_kept_point(text, "x.json").error().message;
  };
  EXPECT_EQ(refusal("[]"), "x.json: this is no point of muster bench run: it is no JSON object");
  EXPECT_EQ(refusal("{}"), "x.json: this is no point of muster bench run: it has no `run`");
  EXPECT_EQ(refusal("{\"run\":{\"point\":3}}"),
            "x.json: this is no point of muster bench run: its `run` has no point or no valid");
}

}  // namespace
}  // namespace muster
