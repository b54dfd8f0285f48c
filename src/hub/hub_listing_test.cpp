#include "hub/hub_listing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

using nlohmann::json;

const std::string kCommit(40, 'a');
const std::string kGit(40, '1');
const std::string kSha256(64, '2');

json entry(const std::string& path) { return {{"rfilename", path}, {"size", 7}, {"blobId", kGit}}; }

std::string listing(json files) {
  return json{{"sha", kCommit}, {"siblings", std::move(files)}}.dump(-1, ' ', false,
                                                                     json::error_handler_t::ignore);
}

std::string fault_of(const std::string& text) {
  const auto parsed = parse_hub_listing(text);
  return parsed ? "no error" : parsed.error().message;
}

TEST(HubListing, NamesSmallFilesByGitAndLargeOnesBySha256) {
  auto large = entry("model.safetensors");
  large["lfs"] = {{"size", 90868376}, {"sha256", kSha256}, {"pointerSize", 133}};
  const auto parsed =
      parse_hub_listing(listing(json::array({entry("1_Pooling/config.json"), large})));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->commit, kCommit);
  ASSERT_EQ(parsed->files.size(), 2U);
  EXPECT_EQ(parsed->files[0].path, "1_Pooling/config.json");
  EXPECT_EQ(parsed->files[0].size, 7U);
  EXPECT_EQ(parsed->files[0].hash_kind, HashKind::GitBlob);
  EXPECT_EQ(parsed->files[0].hash, kGit);
  EXPECT_EQ(parsed->files[1].size, 90868376U);
  EXPECT_EQ(parsed->files[1].hash_kind, HashKind::Sha256);
  EXPECT_EQ(parsed->files[1].hash, kSha256);
}

TEST(HubListing, APathThatLeavesTheFolderIsRefused) {
  for (const std::string path : {"../x", "a/../../x", "/etc/passwd", "", "a//b", "a/", "./a",
                                 "a\nb", "a\x1b[2J", "a\x7f", "..", "."}) {
    EXPECT_NE(
        fault_of(listing(json::array({entry(path)}))).find("siblings names a path that is refused"),
        std::string::npos)
        << path;
  }
  EXPECT_FALSE(is_safe_hub_path(std::string("a\0b", 3)));
  EXPECT_FALSE(is_safe_hub_path("a\xff"));
  EXPECT_FALSE(is_safe_hub_path(std::string(256, 'x')));
  EXPECT_TRUE(is_safe_hub_path("..hidden/a..b/\xc3\xa9 c"));
}

TEST(HubListing, WhatIsMissingOrImpossibleIsNamed) {
  EXPECT_EQ(fault_of("<html>"), "no JSON object");
  EXPECT_EQ(fault_of("{}"), "sha is missing or no commit");
  EXPECT_EQ(fault_of(R"({"sha":"../../x","siblings":[]})"), "sha is missing or no commit");
  EXPECT_EQ(fault_of(json{{"sha", kCommit}}.dump()), "no list siblings");
  auto file = entry("a");
  EXPECT_EQ(fault_of(listing(json::array({file, file}))), "siblings names a twice");
  file["size"] = -1;
  EXPECT_EQ(fault_of(listing(json::array({file}))), "size of a is missing or no whole number");
  file["size"] = 1'000'000'000'001;
  EXPECT_EQ(fault_of(listing(json::array({file}))), "size of a is beyond 1.00 TB: 1.00 TB");
  file["size"] = 1;
  file["blobId"] = "../" + kGit.substr(3);
  EXPECT_EQ(fault_of(listing(json::array({file}))), "blobId of a is missing or no hash");
  file["lfs"] = {{"size", 1}, {"sha256", kGit}};
  EXPECT_EQ(fault_of(listing(json::array({file}))), "lfs.sha256 of a is missing or no hash");
}

TEST(HubListing, MoreFilesThanARepositoryHasAreRefused) {
  auto files = json::array();
  for (int i = 0; i < 100'001; ++i) files.push_back(0);
  EXPECT_EQ(fault_of(listing(files)), "siblings has more than 100,000 files: 100,001");
}

}  // namespace
}  // namespace muster
