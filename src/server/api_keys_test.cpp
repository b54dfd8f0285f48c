#include "server/api_keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace muster {
namespace {

namespace fs = std::filesystem;

// The SHA-256 of "abc" and of the empty text. Source: NIST, "SHA-256 Example Values".
constexpr std::string_view kOfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view kOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string entry(std::string_view name, std::string_view digest, std::string_view more = "") {
  return "  - name: " + std::string(name) + "\n    sha256: " + std::string(digest) + "\n" +
         std::string(more);
}

Result<std::vector<ApiKey>> parse(const std::string& text) {
  return parse_api_keys("k.yaml", text);
}

std::string message_of(const std::string& text) {
  const auto keys = parse(text);
  return keys ? "no error" : keys.error().message;
}

ApiKeys one_key(std::string_view more = "") {
  return ApiKeys(*parse("keys:\n" + entry("other", kOfNothing) + entry("ci", kOfAbc, more)));
}

std::string refusal(const ApiKeys& keys, const HttpHeaders& headers, double now = 0) {
  const auto caller = keys.authenticate(headers, now);
  return caller ? "let in as " + caller->name : caller.error().message;
}

TEST(ApiKeysFile, AllFieldsAreRead) {
  const auto keys =
      parse("# ours\nkeys: [{name: ci, sha256: " + std::string(kOfAbc) +
            ", scopes: [read, admin], requests_per_minute: 600, tokens_per_minute: 1e6, "
            "requests_at_once: 8, expires: 2027-01-01}]\n");
  ASSERT_TRUE(keys.has_value()) << keys.error().message;
  ASSERT_EQ(keys->size(), 1);
  const auto& key = keys->front();
  EXPECT_EQ(key.name, "ci");
  EXPECT_EQ(key.sha256, sha256("abc"));
  EXPECT_EQ(key.scopes, (KeyScopes{false, true, true}));
  EXPECT_EQ(key.limits.requests_per_minute, 600);
  EXPECT_EQ(key.limits.tokens_per_minute, 1'000'000);
  EXPECT_EQ(key.limits.requests_at_once, 8);
  EXPECT_EQ(key.expires_unix_seconds, 1'798'761'600);  // date -u -d 2027-01-01 +%s
}

TEST(ApiKeysFile, WhatIsLeftOutHasItsUsualValue) {
  const auto keys = parse("keys:\n" + entry("ci", kOfAbc));
  ASSERT_TRUE(keys.has_value());
  EXPECT_EQ(keys->front().scopes, (KeyScopes{true, false, false}))
      << "what the server tells of itself is not among it";
  EXPECT_FALSE(keys->front().limits.requests_per_minute);
  EXPECT_FALSE(keys->front().limits.tokens_per_minute);
  EXPECT_FALSE(keys->front().limits.requests_at_once);
  EXPECT_FALSE(keys->front().expires_unix_seconds);
}

TEST(ApiKeysFile, NoKeysAreAllowed) {
  EXPECT_TRUE(parse("keys: []\n")->empty());
  EXPECT_TRUE(parse("keys:\n")->empty());
}

TEST(ApiKeysFile, ErrorsNameTheLineAndTheNearestForm) {
  const std::string good = "keys:\n" + entry("ci", kOfAbc);
  EXPECT_EQ(message_of(good + "    scope: [read]\n"),
            "k.yaml:4: unknown field scope; did you mean scopes?");
  EXPECT_EQ(message_of(good + "    scopes: [raed]\n"),
            "k.yaml:4: unknown scope raed; did you mean read?");
  EXPECT_EQ(message_of(good + "    scopes: []\n"),
            "k.yaml:4: scopes is a list such as [embed, read]");
  EXPECT_EQ(message_of(good + "    requests_at_once: 1.5\n"),
            "k.yaml:4: requests_at_once is a whole number above 0: \"1.5\"");
  EXPECT_EQ(message_of(good + "    tokens_per_minute: -1\n"),
            "k.yaml:4: tokens_per_minute is a number above 0: \"-1\"");
  EXPECT_EQ(message_of(good + "    tokens_per_minute: nan\n"),
            "k.yaml:4: tokens_per_minute is a number above 0: \"nan\"");
  for (const auto* day : {"2027-02-29", "2027-1-01", "20270101", "soon", "2027-01-01T00:00"}) {
    EXPECT_EQ(message_of(good + "    expires: " + day + "\n"),
              std::string("k.yaml:4: expires is a day such as 2027-01-01: \"") + day + "\"");
  }
  EXPECT_EQ(message_of(good + "    name: again\n"), "k.yaml:4: name is there twice");
  EXPECT_EQ(message_of(good + entry("ci", kOfNothing)),
            "k.yaml:4: a key named ci is there already");
  EXPECT_EQ(message_of(good + entry("cd", kOfAbc)),
            "k.yaml:4: the key of cd is there already under another name");
  EXPECT_EQ(message_of("keys:\n  - name: ci\n"), "k.yaml:2: the key has no sha256");
  EXPECT_EQ(message_of("keys:\n" + entry("ci", "abc")),
            "k.yaml:3: sha256 is 64 hexadecimal digits, as `muster keys new` writes them");
  EXPECT_EQ(message_of("keys:\n" + entry("a b", kOfAbc)),
            "k.yaml:2: name is 1 to 64 of A-Z a-z 0-9 . _ -: \"a b\"");
  EXPECT_EQ(message_of("key: []\n"),
            "k.yaml:1: a keys file has one field, \"keys\", and it is a list");
  EXPECT_EQ(message_of("keys: 3\n"), "k.yaml:1: keys is a list");
  EXPECT_EQ(parse("keys: [}\n").error().kind, ErrorKind::Corrupt);
}

TEST(ApiKeys, BothHeadersAreUnderstood) {
  const auto keys = one_key();
  for (const HttpHeaders& headers :
       {HttpHeaders{{"Authorization", "Bearer abc"}},
        HttpHeaders{{"authorization", "bearer  abc "}}, HttpHeaders{{"X-API-Key", "abc"}},
        HttpHeaders{{"x-api-key", "abc"}, {"Accept", "*/*"}},
        HttpHeaders{{"X-Api-Key", "abc"}, {"Authorization", "Bearer abc"}}}) {
    const auto caller = keys.authenticate(headers, 0);
    ASSERT_TRUE(caller.has_value()) << caller.error().message;
    EXPECT_EQ(caller->name, "ci");
    EXPECT_TRUE(caller->may(KeyScope::Embed));
    EXPECT_FALSE(caller->may(KeyScope::Admin));
  }
}

TEST(ApiKeys, AnythingElseIsRefused) {
  const auto keys = one_key();
  const std::string needed = "an API key is needed: send it as \"Authorization: Bearer KEY\"";
  const std::string unknown = "the API key is not known";
  EXPECT_EQ(refusal(keys, {}), needed);
  EXPECT_EQ(refusal(keys, {{"Authorization", "Bearer "}}), needed)
      << "not the key of the empty text";
  EXPECT_EQ(refusal(keys, {{"X-API-Key", ""}}), needed);
  EXPECT_EQ(refusal(keys, {{"Authorization", "Basic abc"}}),
            "the Authorization header is not \"Bearer KEY\"");
  EXPECT_EQ(refusal(keys, {{"X-API-Key", "abd"}}), unknown);
  EXPECT_EQ(refusal(keys, {{"X-API-Key", std::string(kOfAbc)}}), unknown) << "the hash is no key";
  EXPECT_EQ(refusal(keys, {{"X-API-Key", std::string(100'000, 'a')}}), unknown);
  EXPECT_EQ(refusal(keys, {{"X-API-Key", "abc"}, {"Authorization", "Bearer abd"}}),
            "the request carries two different API keys");
  EXPECT_EQ(refusal(ApiKeys({}), {{"X-API-Key", "abc"}}), unknown);
}

TEST(ApiKeys, AnExpiredKeyIsRefusedFromItsDayOn) {
  const auto keys = one_key("    expires: 1970-01-02\n");
  EXPECT_EQ(refusal(keys, {{"X-API-Key", "abc"}}, 86'399), "let in as ci");
  EXPECT_EQ(refusal(keys, {{"X-API-Key", "abc"}}, 86'400), "the API key ci has expired");
}

TEST(ApiKeys, LimitsGoByName) {
  const auto limits = one_key("    requests_per_minute: 60\n").limits();
  ASSERT_EQ(limits.size(), 2);
  EXPECT_EQ(limits.at("ci").requests_per_minute, 60);
  EXPECT_FALSE(limits.at("other").requests_per_minute);
}

TEST(ApiKeys, AFileThatEverybodyMayReadIsRefused) {
  std::string pattern = (fs::temp_directory_path() / "muster-keys-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  const auto path = folder / "keys.yaml";
  std::ofstream(path) << "keys:\n" << entry("ci", kOfAbc);
  ::chmod(path.c_str(), 0644);
  const auto refused = ApiKeys::load(path);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused.error().message, path.string() +
                                         ": everybody on this machine may use it (mode 0644); say "
                                         "`chmod o-rwx` to it");
  ::chmod(path.c_str(), 0640);
  const auto keys = ApiKeys::load(path);
  ASSERT_TRUE(keys.has_value()) << keys.error().message;
  EXPECT_EQ((*keys)->count(), 1);
  EXPECT_EQ(ApiKeys::load(folder).error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(ApiKeys::load(folder / "none").error().kind, ErrorKind::NotFound);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace muster
