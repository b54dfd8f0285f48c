#include "hub/pull.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "hub/curl_library.h"
#include "hub/served_hub.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

class Pull : public testing::Test {
 protected:
  Pull() {
    here_.hub.put("config.json", "{}\n");
    here_.hub.put("1_Pooling/config.json", R"({"pooling_mode_mean_tokens":true})");
    here_.hub.put("model.safetensors", weights_, /*is_large=*/true);
    here_.hub.put("README.md", "not fetched");
  }

  void expect_whole() {
    EXPECT_EQ(text_of(here_.snapshot() / "config.json"), "{}\n");
    EXPECT_EQ(text_of(here_.snapshot() / "1_Pooling/config.json"),
              R"({"pooling_mode_mean_tokens":true})");
    EXPECT_EQ(text_of(here_.snapshot() / "model.safetensors"), weights_);
    EXPECT_EQ(text_of(here_.model_folder() / "refs/main"), ServedHub::kCommit);
  }

  const std::string weights_ = bytes_of(3000);
  PullFixture here_;
};

TEST_F(Pull, MakesTheCacheAsHuggingFaceDoes) {
  const auto received = here_.pull();
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(*received, weights_.size() + 3 + 33);
  expect_whole();
  const auto snapshot = here_.snapshot();
  EXPECT_EQ(fs::read_symlink(snapshot / "config.json"),
            "../../blobs/" + here_.hub.hash_of("config.json"));
  EXPECT_EQ(fs::read_symlink(snapshot / "1_Pooling/config.json"),
            "../../../blobs/" + here_.hub.hash_of("1_Pooling/config.json"));
  EXPECT_EQ(fs::read_symlink(snapshot / "model.safetensors"),
            "../../blobs/" + here_.hub.hash_of("model.safetensors"));
  EXPECT_FALSE(fs::exists(snapshot / "README.md"));
  EXPECT_EQ(std::distance(fs::directory_iterator(here_.model_folder() / "blobs"), {}), 3);
  EXPECT_TRUE(fs::exists(here_.cache / ".locks/models--org--tiny" /
                         (here_.hub.hash_of("config.json") + ".lock")));
}

TEST_F(Pull, TheSecondRunAsksOnceAndFetchesNothing) {
  ASSERT_TRUE(here_.pull());
  here_.hub.forget_requests();
  const auto plan = plan_pull(here_.access(), {.model = ServedHub::kModel}, here_.events());
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->is_done);
  ASSERT_EQ(here_.hub.hub_requests().size(), 1U);
  EXPECT_EQ(here_.hub.hub_requests()[0].path, "/api/models/org/tiny/revision/main");
  EXPECT_EQ(here_.hub.hub_requests()[0].query, "blobs=true");
}

TEST_F(Pull, PlansWithoutWriting) {
  const auto plan = plan_pull(here_.access(), {.model = ServedHub::kModel}, here_.events());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->files.size(), 3U);
  EXPECT_EQ(plan->bytes_all(), weights_.size() + 3 + 33);
  EXPECT_EQ(plan->bytes_here(), 0U);
  EXPECT_EQ(plan->snapshot, here_.snapshot());
  EXPECT_FALSE(fs::exists(here_.cache));
}

TEST_F(Pull, TheTokenGoesToTheHubAndNotWhereItRedirects) {
  here_.token = "hf_secret";
  ASSERT_TRUE(here_.pull());
  for (const auto& request : here_.hub.hub_requests()) {
    EXPECT_EQ(request.token, "Bearer hf_secret") << request.path;
  }
  ASSERT_EQ(here_.hub.store_requests().size(), 1U);
  EXPECT_EQ(here_.hub.store_requests()[0].token, "");
}

TEST_F(Pull, AConnectionCutAnywhereIsGoneOnWith) {
  // 37 bytes apart over the head (some 150 bytes) and the body of the answer.
  for (std::size_t cut = 1; cut < weights_.size() + 150; cut += 37) {
    SCOPED_TRACE(cut);
    fs::remove_all(here_.cache);
    here_.hub.store_relay().cut_next({cut, cut / 2 + 1});
    const auto received = here_.pull();
    ASSERT_TRUE(received) << received.error().message;
    EXPECT_EQ(*received, weights_.size() + 3 + 33);  // no byte came twice
    expect_whole();
  }
  EXPECT_FALSE(here_.waits.empty());
  EXPECT_FALSE(here_.notices.empty());
}

TEST_F(Pull, WhatAnEarlierRunLeftIsGoneOnWith) {
  fs::create_directories(here_.model_folder() / "blobs");
  ASSERT_TRUE(write_file_atomically(here_.growing("model.safetensors"), weights_.substr(0, 1234)));
  const auto plan = plan_pull(here_.access(), {.model = ServedHub::kModel}, here_.events());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->bytes_here(), 1234U);
  const auto received = fetch_files(here_.access(), *plan, here_.events());
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(*received, weights_.size() - 1234 + 3 + 33);
  EXPECT_EQ(here_.hub.store_requests().back().range, "bytes=1234-");
  expect_whole();
}

TEST_F(Pull, AllOfAFileThatAnEarlierRunLeftIsOnlyChecked) {
  fs::create_directories(here_.model_folder() / "blobs");
  ASSERT_TRUE(write_file_atomically(here_.growing("model.safetensors"), weights_));
  EXPECT_EQ(*here_.pull(), 3U + 33U);
  expect_whole();
}

TEST_F(Pull, WhatAnEarlierRunLeftDamagedIsFetchedAnew) {
  fs::create_directories(here_.model_folder() / "blobs");
  for (const auto& left : {std::string(1000, 'x'), std::string(9000, 'x')}) {
    fs::remove_all(here_.snapshot());
    fs::remove(here_.model_folder() / "blobs" / here_.hub.hash_of("model.safetensors"));
    ASSERT_TRUE(write_file_atomically(here_.growing("model.safetensors"), left));
    const auto received = here_.pull();
    ASSERT_TRUE(received) << received.error().message;
    expect_whole();
  }
}

TEST_F(Pull, AServerWithoutRangesSendsAllOfIt) {
  here_.hub.ignore_ranges();
  here_.hub.store_relay().cut_next({2000});
  const auto received = here_.pull();
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_GT(*received, weights_.size() + 3 + 33);
  expect_whole();
}

TEST_F(Pull, ARefusedRangeBeginsAnew) {
  fs::create_directories(here_.model_folder() / "blobs");
  ASSERT_TRUE(write_file_atomically(here_.growing("model.safetensors"), weights_.substr(0, 100)));
  here_.hub.answer_first([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (!request.header("Range") || !request.path.starts_with("/store/")) return std::nullopt;
    return HttpResponse{.status = 416, .body = "no"};
  });
  EXPECT_EQ(*here_.pull(), weights_.size() + 3 + 33);
  expect_whole();
}

TEST_F(Pull, BytesThatAreOthersThanStatedAreRemoved) {
  auto spoilt = weights_;
  spoilt[1500] ^= 1;
  here_.hub.spoil("model.safetensors", spoilt);
  const auto received = here_.pull();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(received.error().message,
            "model.safetensors: its bytes are not those that the hub states (SHA-256 " +
                here_.hub.hash_of("model.safetensors") + "); it is removed");
  EXPECT_FALSE(fs::exists(here_.growing("model.safetensors")));
  EXPECT_FALSE(fs::exists(here_.snapshot() / "model.safetensors"));
  EXPECT_FALSE(fs::exists(here_.model_folder() / "refs/main"));
}

TEST_F(Pull, ASmallFileIsComparedTooByGitsHash) {
  here_.hub.spoil("config.json", "[]\n");
  EXPECT_EQ(here_.fault(),
            "config.json: its bytes are not those that the hub states (git's SHA-1 " +
                here_.hub.hash_of("config.json") + "); it is removed");
}

TEST_F(Pull, ABranchStandsForItsCommitAndACommitForItself) {
  ASSERT_TRUE(here_.pull({.model = ServedHub::kModel, .revision = "refs/pr/1"}));
  EXPECT_EQ(text_of(here_.model_folder() / "refs/refs/pr/1"), ServedHub::kCommit);
  EXPECT_EQ(here_.hub.hub_requests()[0].path, "/api/models/org/tiny/revision/refs%2Fpr%2F1");
  EXPECT_FALSE(fs::exists(here_.model_folder() / "refs/main"));
  ASSERT_TRUE(here_.pull({.model = ServedHub::kModel, .revision = ServedHub::kCommit}));
  EXPECT_FALSE(fs::exists(here_.model_folder() / "refs" / ServedHub::kCommit));
  EXPECT_EQ(here_.fault({.model = ServedHub::kModel, .revision = std::string(40, 'd')}),
            here_.hub.endpoint() + " answers with commit " + ServedHub::kCommit + " where " +
                std::string(40, 'd') + " was asked for");
}

// An older snapshot that is whole is not lost for one file of a newer one.
TEST_F(Pull, SomeFilesOfANewerCommitLeaveTheNameToTheWholeOne) {
  const std::string older(40, 'a');
  const auto reference = here_.model_folder() / "refs/main";
  fs::create_directories(here_.model_folder() / "snapshots" / older);
  fs::create_directories(reference.parent_path());
  ASSERT_TRUE(write_file_atomically(
      here_.model_folder() / "snapshots" / older / "model.safetensors", "old"));
  ASSERT_TRUE(write_file_atomically(reference, older));

  ASSERT_TRUE(here_.pull({.model = ServedHub::kModel, .patterns = {"config.json"}}));
  EXPECT_EQ(text_of(here_.snapshot() / "config.json"), "{}\n");
  EXPECT_EQ(text_of(reference), older);
  ASSERT_EQ(here_.notices.size(), 1U);
  EXPECT_EQ(here_.notices[0],
            "main has moved on to ccccccc, and aaaaaaa here has files that were not asked for now: "
            "the name org/tiny still finds that one; a pull without --file moves it");

  here_.notices.clear();
  ASSERT_TRUE(here_.pull());
  EXPECT_TRUE(here_.notices.empty());
  expect_whole();
}

TEST_F(Pull, ATokenNeedsALibcurlThatKeepsItToItsHost) {
  EXPECT_TRUE(check_keeps_tokens(0x073a00));
  EXPECT_TRUE(check_keeps_tokens(0x080e01));
  const auto refused = check_keeps_tokens(0x073901);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(
      refused.error().message,
      "libcurl 7.57.1 would send the hub's token to other hosts too: install 7.58.0 or newer, "
      "or pull without a token");
}

TEST_F(Pull, AnEmptyFileNeedsNoRequest) {
  here_.hub.put("special_tokens_map.json", "");
  ASSERT_TRUE(here_.pull());
  EXPECT_EQ(text_of(here_.snapshot() / "special_tokens_map.json"), "");
}

TEST_F(Pull, TwoAtOnceFetchEachFileOnce) {
  Result<std::uint64_t> other = std::uint64_t{0};
  const auto plan = plan_pull(here_.access(), {.model = ServedHub::kModel}, here_.events());
  ASSERT_TRUE(plan);
  const PullEvents quiet{.on_progress = [](const PullProgress&) {},
                         .on_notice = [](const std::string&) {},
                         .is_cancelled = [] { return false; },
                         .wait = [](Duration) { std::this_thread::yield(); }};
  std::thread second([&] { other = fetch_files(here_.access(), *plan, quiet); });
  const auto first = fetch_files(here_.access(), *plan, quiet);
  second.join();
  ASSERT_TRUE(first && other);
  EXPECT_EQ(*first + *other, weights_.size() + 3 + 33);
  expect_whole();
}

TEST_F(Pull, WaitsForWhoeverHoldsTheLock) {
  const auto locks = here_.cache / ".locks/models--org--tiny";
  fs::create_directories(locks);
  UniqueFd held(::open((locks / (here_.hub.hash_of("config.json") + ".lock")).c_str(),
                       O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  here_.on_wait = [&] {
    if (here_.waits.size() == 3) held.reset();
  };
  ASSERT_TRUE(here_.pull());
  EXPECT_EQ(here_.notices,
            std::vector<std::string>{"config.json: another process fetches it; waiting"});
  expect_whole();
}

TEST_F(Pull, WhatHasComeIsKeptWhenItIsStopped) {
  here_.cancel_at = 500;
  const auto received = here_.pull();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind, ErrorKind::Cancelled);
  EXPECT_FALSE(fs::exists(here_.model_folder() / "refs/main"));
  here_.cancel_at = UINT64_MAX;
  ASSERT_TRUE(here_.pull());
  expect_whole();
}

}  // namespace
}  // namespace muster
