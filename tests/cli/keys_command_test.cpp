#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>

#include "run_muster.h"

namespace muster {
namespace {

class KeysCommand : public testing::Test {
 protected:
  nlohmann::json list() {
    const auto finished = muster_.run({"keys", "list", "--json", "--file", "keys.yaml"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return nlohmann::json::parse(finished.out, nullptr, false);
  }
  mode_t mode_of(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(::stat((muster_.folder() / name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  }

  Muster muster_{"keys_command"};
};

// Each reads the file, adds its key and puts the new file in place: without a lock most of them
// are overwritten by another that read the same.
TEST_F(KeysCommand, SixteenAtATimeLeaveSixteenKeys) {
  constexpr int kCount = 16;
  std::vector<pid_t> pids;
  for (int i = 0; i < kCount; ++i) {
    pids.push_back(muster_.start({"keys", "new", "k" + std::to_string(i), "--file", "keys.yaml"},
                                 "/dev/null", "out" + std::to_string(i)));
  }
  for (const auto pid : pids) EXPECT_EQ(muster_.wait(pid).exit_code, 0);
  std::set<std::string> names;
  for (const auto& key : list()) names.insert(key["name"]);
  EXPECT_EQ(names.size(), kCount);
  EXPECT_EQ(mode_of("keys.yaml"), 0600);
}

TEST_F(KeysCommand, AnotherWriterKeepsTheModeOfTheFile) {
  EXPECT_EQ(muster_.run({"keys", "new", "a", "--file", "keys.yaml"}).exit_code, 0);
  ::chmod((muster_.folder() / "keys.yaml").c_str(), 0640);
  EXPECT_EQ(muster_.run({"keys", "new", "b", "--file", "keys.yaml"}).exit_code, 0);
  EXPECT_EQ(mode_of("keys.yaml"), 0640);
  EXPECT_EQ(muster_.run({"keys", "remove", "a", "--file", "keys.yaml"}).exit_code, 0);
  EXPECT_EQ(mode_of("keys.yaml"), 0640);
  ASSERT_EQ(list().size(), 1);
}

TEST_F(KeysCommand, AKeyThatNobodySawIsNotInTheFile) {
  EXPECT_EQ(muster_.run({"keys", "new", "a", "--file", "keys.yaml"}).exit_code, 0);
  const auto pid =
      muster_.start({"keys", "new", "b", "--file", "keys.yaml"}, "/dev/null", "/dev/full");
  EXPECT_NE(muster_.wait(pid).exit_code, 0);
  ASSERT_EQ(list().size(), 1);
  EXPECT_EQ(list()[0]["name"], "a");
}

TEST_F(KeysCommand, RemovingFromNoFileLeavesNothingBehind) {
  EXPECT_EQ(muster_.run({"keys", "remove", "a", "--file", "none.yaml"}).exit_code, 3);
  EXPECT_FALSE(muster_.exists("none.yaml.lock"));
}

TEST_F(KeysCommand, ANewKeyMayEmbedAndNoMore) {
  EXPECT_EQ(muster_.run({"keys", "new", "a", "--file", "keys.yaml"}).exit_code, 0);
  const auto key = list().at(0);
  EXPECT_EQ(key["scopes"], nlohmann::json({"embed"}));
  EXPECT_EQ(key["expires"], nullptr);
  EXPECT_EQ(key["is_expired"], false);
  EXPECT_EQ(key["requests_per_minute"], nullptr);
}

TEST_F(KeysCommand, AKeyThatWouldNeverBeAcceptedIsRefused) {
  const auto finished =
      muster_.run({"keys", "new", "old", "--expires", "2020-01-01", "--file", "keys.yaml"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.err,
            "muster: --expires 2020-01-01 is past: the key begins to be refused with that day, by "
            "UTC, and would never be accepted\n");
  EXPECT_FALSE(muster_.exists("keys.yaml"));
  EXPECT_EQ(muster_.run({"keys", "new", "new", "--expires", "2999-01-01", "--file", "keys.yaml"})
                .exit_code,
            0);
  EXPECT_EQ(list().at(0)["expires"], "2999-01-01");
}

}  // namespace
}  // namespace muster
