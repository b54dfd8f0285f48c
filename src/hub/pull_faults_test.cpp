// What a hub refuses, and what a hostile one tries.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "hub/blob_download.h"
#include "hub/pull.h"
#include "hub/served_hub.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PullFaults : public testing::Test {
 protected:
  PullFaults() { here_.hub.put("config.json", "{}\n"); }

  // Every answer to a path that begins so; the others are the hub's own.
  void answer(const std::string& start, HttpResponse response) {
    here_.hub.answer_first(
        [start, response](const HttpRequest& request) -> std::optional<HttpResponse> {
          if (!request.path.starts_with(start)) return std::nullopt;
          return response;
        });
  }

  void answer_listing(const json& siblings) {
    answer("/api/", {.body = json{{"sha", ServedHub::kCommit}, {"siblings", siblings}}.dump()});
  }

  std::string fault_with(int status, const HttpHeaders& headers) {
    answer("/api/", {.status = status, .body = "no", .headers = headers});
    return here_.fault();
  }

  PullFixture here_;
};

TEST_F(PullFaults, WhatTheHubRefusesIsToldWithWhatToDo) {
  const auto hub = here_.hub.endpoint();
  EXPECT_EQ(fault_with(404, {}), "no model org/tiny at " + hub + " (a private one needs HF_TOKEN)");
  EXPECT_EQ(fault_with(401, {{"X-Error-Code", "RepoNotFound"}}),
            "no model org/tiny at " + hub + " (a private one needs HF_TOKEN)");
  EXPECT_EQ(fault_with(404, {{"X-Error-Code", "RevisionNotFound"}}),
            "org/tiny has no revision main");
  EXPECT_EQ(fault_with(401, {{"X-Error-Code", "GatedRepo"}}),
            "org/tiny is gated: accept its terms at " + hub +
                "/org/tiny and set HF_TOKEN to a token of that account");
  EXPECT_EQ(fault_with(403, {{"X-Error-Message", "Access to this resource is disabled."}}),
            hub + " refuses org/tiny: Access to this resource is disabled.");
  here_.token = "hf_x";
  EXPECT_EQ(fault_with(403, {{"X-Error-Code", "GatedRepo"}}),
            "org/tiny is gated, and the account of the token of HF_TOKEN has no access: accept its "
            "terms at " +
                hub + "/org/tiny");
  EXPECT_EQ(fault_with(401, {{"X-Error-Message", "Invalid credentials in Authorization header"}}),
            hub + " refuses the token of HF_TOKEN: make a new one at " + hub + "/settings/tokens");
  EXPECT_EQ(fault_with(401, {}),
            "no model org/tiny at " + hub +
                " (a private one needs a token that may read it, which that of HF_TOKEN may not)");
  EXPECT_TRUE(here_.waits.empty());  // none of them is tried again
}

TEST_F(PullFaults, AnUnknownNameIsAnsweredWithTheNearest) {
  fs::create_directories(here_.cache / "models--org--tinny");
  EXPECT_EQ(fault_with(404, {}), "no model org/tiny at " + here_.hub.endpoint() +
                                     " (a private one needs HF_TOKEN); did you mean org/tinny?");
  EXPECT_EQ(here_.fault({.model = "MiniLM"}),
            "no model MiniLM at " + here_.hub.endpoint() +
                " (a private one needs HF_TOKEN); did you mean sentence-transformers/MiniLM?");
}

TEST_F(PullFaults, ANameThatIsNoneIsRefusedBeforeTheHubIsAsked) {
  EXPECT_EQ(here_.fault({.model = "https://huggingface.co/org/tiny/tree/main"}),
            "\"https://huggingface.co/org/tiny/tree/main\" is no model's name on a hub; did you "
            "mean org/tiny?");
  EXPECT_EQ(here_.fault({.model = "../x"}),
            "\"../x\" is no model's name on a hub; the form is ORG/NAME");
  EXPECT_EQ(here_.fault({.model = "org/tiny", .revision = "../../x"}),
            "--revision: \"../../x\" is no branch, tag or commit");
  EXPECT_TRUE(here_.hub.hub_requests().empty());
}

TEST_F(PullFaults, ABusyHubIsAskedAgainWhenItSays) {
  int asked = 0;
  here_.hub.answer_first([&](const HttpRequest&) -> std::optional<HttpResponse> {
    if (++asked == 1)
      return HttpResponse{.status = 429, .body = {}, .headers = {{"Retry-After", "17"}}};
    if (asked == 2)
      return HttpResponse{.status = 429, .body = {}, .headers = {{"RateLimit", "\"api\";r=0;t=9"}}};
    if (asked == 3) return HttpResponse{.status = 503, .body = {}};
    return std::nullopt;
  });
  ASSERT_TRUE(here_.pull());
  using std::chrono::seconds;
  EXPECT_EQ(here_.waits, (std::vector<Duration>{seconds(17), seconds(9), seconds(4)}));
  EXPECT_EQ(here_.notices.front(), "org/tiny: 429 Too Many Requests; trying again in 17 s");
}

TEST_F(PullFaults, AttemptsEnd) {
  EXPECT_EQ(fault_with(503, {}),
            "gave up after 6 attempts: " + here_.hub.endpoint() +
                " answers 503 Service Unavailable to the question for org/tiny");
  EXPECT_EQ(here_.hub.hub_requests().size(), 6U);
  EXPECT_EQ(fault_with(429, {{"Retry-After", "3600"}}),
            here_.hub.endpoint() +
                " answers 429 Too Many Requests to the question for org/tiny; it asks to come back "
                "in 3600 s");
  EXPECT_EQ(here_.hub.hub_requests().size(), 7U);
}

TEST_F(PullFaults, AFileThatNeverGetsLongerIsGivenUp) {
  here_.hub.put("model.safetensors", std::string(1000, 'w'), true);
  here_.hub.spoil("model.safetensors", std::string(900, 'w'));
  const auto received = here_.pull();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind, ErrorKind::Unavailable);
  EXPECT_TRUE(received.error().message.starts_with("gave up after 6 attempts: "))
      << received.error().message;
}

TEST_F(PullFaults, AHubThatIsNotThereIsToldAtOnce) {
  auto access = here_.access();
  access.endpoint = "http://127.0.0.1:1";  // tcpmux, which nothing on a test machine serves
  const auto plan = plan_pull(access, {.model = "org/tiny"}, here_.events());
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, ErrorKind::Unavailable);
  EXPECT_TRUE(plan.error().message.starts_with("http://127.0.0.1:1 cannot be reached: "));
  EXPECT_TRUE(plan.error().message.ends_with("https_proxy names a proxy, HF_ENDPOINT a mirror"));
  EXPECT_TRUE(here_.waits.empty());
}

TEST_F(PullFaults, AListThatNamesAPathOutsideIsRefused) {
  answer_listing({{{"rfilename", "../../evil"}, {"size", 1}, {"blobId", std::string(40, '1')}}});
  EXPECT_EQ(here_.fault(), here_.hub.endpoint() +
                               " answers for org/tiny with no list of files that can be used: "
                               "siblings names a path that is refused: \"../../evil\"");
  EXPECT_FALSE(fs::exists(here_.cache));
}

TEST_F(PullFaults, AnAnswerThatIsNoListIsRefused) {
  answer("/api/", {.body = "<html>log in</html>"});
  EXPECT_EQ(here_.fault(), here_.hub.endpoint() +
                               " answers for org/tiny with no list of files that can be used: no "
                               "JSON object");
}

TEST_F(PullFaults, WhatTheDiskCannotHoldIsNotBegun) {
  auto siblings = json::array();
  for (int i = 0; i < 100; ++i) {
    siblings.push_back({{"rfilename", std::to_string(i) + ".gguf"},
                        {"size", 1'000'000'000'000},
                        {"blobId", std::string(40, '1')}});
  }
  answer_listing(siblings);
  const auto received = here_.pull({.model = "org/tiny", .patterns = {"*"}});
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_NE(received.error().message.find("the disk has too little room for org/tiny: 100 TB"),
            std::string::npos)
      << received.error().message;
  EXPECT_FALSE(fs::exists(here_.cache));
}

TEST_F(PullFaults, ACacheThatIsAFileIsNamed) {
  std::ofstream(here_.cache) << "a file";
  EXPECT_TRUE(here_.fault().ends_with(": cannot make the folder: Not a directory"))
      << here_.fault();
}

TEST_F(PullFaults, MoreBytesThanStatedAreNotTaken) {
  here_.hub.spoil("config.json", std::string(100'000, 'x'));
  EXPECT_EQ(here_.fault(), "config.json: more bytes come than the hub states (3); it is removed");
  EXPECT_FALSE(fs::exists(here_.growing("config.json")));
}

TEST_F(PullFaults, AnotherRangeThanAskedForIsNotTaken) {
  here_.hub.put("model.safetensors", std::string(1000, 'w'), true);
  here_.hub.store_relay().cut_next({500});
  here_.hub.answer_first([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (!request.header("Range") || !request.path.starts_with("/store/")) return std::nullopt;
    return HttpResponse{.status = 206, .body = "w", .headers = {{"Content-Range", "bytes 1-1/9"}}};
  });
  const auto received = here_.pull();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind, ErrorKind::Corrupt);
  EXPECT_NE(received.error().message.find("the hub sends \"bytes 1-1/9\""), std::string::npos)
      << received.error().message;
}

TEST_F(PullFaults, ARedirectThatNeverEndsIsLeft) {
  answer("/org/", {.status = 302, .body = {}, .headers = {{"Location", "/org/round"}}});
  const auto received = here_.pull();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(received.error().message.find(" redirects config.json of org/tiny where it is not "),
            std::string::npos)
      << received.error().message;
}

TEST_F(PullFaults, ARedirectToAFileOfThisMachineIsNotFollowed) {
  answer("/org/", {.status = 302, .body = {}, .headers = {{"Location", "file:///etc/hostname"}}});
  EXPECT_NE(here_.fault().find(" redirects config.json of org/tiny where it is not "),
            std::string::npos);
}

TEST(ContentRange, IsTheRestOfTheFile) {
  EXPECT_TRUE(is_content_range("bytes 5-9/10", 5, 10));
  EXPECT_TRUE(is_content_range("bytes 5-9/*", 5, 10));
  for (const char* other : {"", "bytes 4-9/10", "bytes 5-8/10", "bytes 5-9/11", "bytes */10"}) {
    EXPECT_FALSE(is_content_range(other, 5, 10)) << other;
  }
}

}  // namespace
}  // namespace muster
