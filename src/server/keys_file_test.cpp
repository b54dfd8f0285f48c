#include "server/keys_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

ApiKey key_of(const std::string& name, std::string_view key) {
  ApiKey made;
  made.name = name;
  made.sha256 = sha256(key);
  return made;
}

TEST(KeysFile, AMadeKeyIs256BitsAndAnotherEachTime) {
  const auto key = make_api_key();
  EXPECT_EQ(key.size(), 7 + 64);
  EXPECT_EQ(key.substr(0, 7), "muster-");
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef", 7), std::string::npos);
  EXPECT_NE(key, make_api_key());
}

TEST(KeysFile, AnEntryReadsBackAsItWas) {
  auto key = key_of("ci", "abc");
  key.scopes = {true, false, true};
  key.limits = {.requests_per_minute = 0.5, .tokens_per_minute = 1e9, .requests_at_once = 3};
  key.expires_unix_seconds = 1'798'761'600;  // date -u -d 2027-01-01 +%s
  EXPECT_NE(keys_file_entry(key).find("expires: 2027-01-01\n"), std::string::npos);
  const auto read = parse_api_keys("k", "keys:\n" + keys_file_entry(key));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const auto& back = read->front();
  EXPECT_EQ(back.name, "ci");
  EXPECT_EQ(back.sha256, key.sha256);
  EXPECT_EQ(back.scopes, key.scopes);
  EXPECT_EQ(back.limits.requests_per_minute, 0.5);
  EXPECT_EQ(back.limits.tokens_per_minute, 1e9);
  EXPECT_EQ(back.limits.requests_at_once, 3);
  EXPECT_EQ(back.expires_unix_seconds, key.expires_unix_seconds);
}

TEST(KeysFile, AnEntryIsAppendedAndCommentsStay) {
  const std::string before = "# ours\nkeys:\n" + keys_file_entry(key_of("a", "1")) + "  # end";
  const auto after = with_api_key("k", before, key_of("b", "2"));
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(*after, before + "\n" + keys_file_entry(key_of("b", "2")));
}

TEST(KeysFile, WhatCannotBeAppendedToIsWrittenAnew) {
  const auto entry = keys_file_entry(key_of("b", "2"));
  for (const auto* before : {"", "\n", "keys: []\n", "keys: []"}) {
    EXPECT_EQ(*with_api_key("k", before, key_of("b", "2")), "keys:\n" + entry) << before;
  }
  EXPECT_EQ(*with_api_key("k", "keys:\n", key_of("b", "2")), "keys:\n" + entry);
  const auto a = key_of("a", "1");
  const std::string digest = keys_file_entry(a).substr(keys_file_entry(a).find("sha256: ") + 8, 64);
  const auto both =
      with_api_key("k", "keys: [{name: a, sha256: " + digest + "}]\n", key_of("b", "2"));
  ASSERT_TRUE(both.has_value()) << both.error().message;
  EXPECT_EQ(*both, "keys:\n" + keys_file_entry(a) + entry);
}

TEST(KeysFile, ANameIsGivenOnce) {
  const auto again =
      with_api_key("k", "keys:\n" + keys_file_entry(key_of("a", "1")), key_of("a", "2"));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().message, "k: a key named a is there already");
}

TEST(KeysFile, OneEntryIsTakenOut) {
  const std::string text =
      "keys:\n" + keys_file_entry(key_of("build", "1")) + keys_file_entry(key_of("b", "2"));
  EXPECT_EQ(*without_api_key("k", text, "build"), "keys:\n" + keys_file_entry(key_of("b", "2")));
  EXPECT_EQ(*without_api_key("k", "keys:\n" + keys_file_entry(key_of("b", "2")), "b"),
            "keys: []\n");
  EXPECT_EQ(without_api_key("k", text, "biuld").error().message,
            "k: there is no key biuld; did you mean build?");
  EXPECT_EQ(without_api_key("k", text, "zzz").error().kind, ErrorKind::NotFound);
}

TEST(KeysFile, ANewFileIsItsOwnersAndAnOldOneKeepsItsMode) {
  std::string pattern = (fs::temp_directory_path() / "muster-keys-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  const auto path = folder / "keys.yaml";
  ASSERT_TRUE(write_keys_file(path, "keys: []\n").has_value());
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0600));
  ::chmod(path.c_str(), 0640);
  ASSERT_TRUE(write_keys_file(path, "keys:\n").has_value());
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  EXPECT_EQ(*read_file(path), "keys:\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "nothing else is left";
  EXPECT_EQ(write_keys_file(folder / "no" / "k", "").error().kind, ErrorKind::NotFound);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace muster
