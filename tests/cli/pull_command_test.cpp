// muster pull, on the real program, from a hub that this test serves.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "hub/served_hub.h"
#include "run_muster.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class PullCommand : public testing::Test {
 protected:
  PullCommand() {
    for (const auto& entry : fs::recursive_directory_iterator(tiny_model())) {
      if (!entry.is_regular_file()) continue;
      const auto path = entry.path().lexically_relative(tiny_model()).string();
      hub_.put(path, text_of(entry.path()), path == "model.safetensors");
    }
    muster_.set("HF_ENDPOINT", hub_.endpoint());
  }

  fs::path model() const { return muster_.folder() / ".cache/huggingface/hub/models--org--tiny"; }
  std::string snapshot() const { return (model() / "snapshots" / ServedHub::kCommit).string(); }

  ServedHub hub_;
  Muster muster_{"pull"};
};

TEST_F(PullCommand, PrintsTheSnapshotThatEmbedFinds) {
  muster_.write("notes.txt", "one text\n");
  const auto embed = with_test_worker({"embed", "org/tiny", "notes.txt", "-o", "notes.npy"});
  const auto before = muster_.run(embed);
  EXPECT_EQ(before.exit_code, 3);
  EXPECT_TRUE(before.err.ends_with("; fetch it by muster pull org/tiny\n")) << before.err;

  const auto pulled = muster_.run({"pull", "org/tiny"});
  EXPECT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_EQ(pulled.out, snapshot() + "\n");
  EXPECT_NE(pulled.err.find(" came over the network\n"), std::string::npos) << pulled.err;
  const auto after = muster_.run(embed);
  EXPECT_EQ(after.exit_code, 0) << after.err;

  const auto again = muster_.run({"pull", "org/tiny"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, pulled.out);
  EXPECT_TRUE(again.err.starts_with("muster: already here: ")) << again.err;
  EXPECT_EQ(muster_.run({"pull", "org/tiny", "--quiet"}).err, "");
}

TEST_F(PullCommand, ADryRunListsAndWritesNothing) {
  const auto listed = muster_.run({"pull", "org/tiny", "--dry-run"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(listed.err, "");
  EXPECT_NE(listed.out.find("model.safetensors"), std::string::npos) << listed.out;
  EXPECT_FALSE(fs::exists(model()));
}

TEST_F(PullCommand, ProgramsGetJson) {
  const auto pulled = muster_.run({"pull", "org/tiny", "--json", "--quiet", "--file", "config.json",
                                   "--cache-dir", "other", "--revision", ServedHub::kCommit});
  EXPECT_EQ(pulled.exit_code, 0) << pulled.err;
  const auto json = nlohmann::json::parse(pulled.out);
  EXPECT_EQ(json["commit"], ServedHub::kCommit);
  EXPECT_EQ(json["files"].size(), 1U);
  EXPECT_EQ(json["bytes_received"], json["bytes"]);
  const auto folder = muster_.folder() / "other/models--org--tiny/snapshots" / ServedHub::kCommit;
  EXPECT_EQ(json["path"], folder.string());
  EXPECT_TRUE(fs::exists(folder / "config.json"));
}

TEST_F(PullCommand, WhatIsStoppedSaysHowToGoOn) {
  std::promise<pid_t> started;
  const auto pid = started.get_future().share();
  hub_.answer_first([&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (!request.path.starts_with("/store/")) return std::nullopt;
    ::kill(pid.get(), SIGINT);  // it is busy with its largest file
    return HttpResponse{.status = 503, .body = "later"};
  });
  started.set_value(muster_.start({"pull", "org/tiny"}));
  const auto stopped = muster_.wait(pid.get());
  EXPECT_EQ(stopped.exit_code, 130);
  EXPECT_EQ(stopped.out, "");
  EXPECT_NE(
      stopped.err.find(" files are whole and what has come of the rest is kept, go on with: "),
      std::string::npos)
      << stopped.err;
  EXPECT_FALSE(fs::exists(model() / "refs/main"));
  hub_.answer_first(nullptr);
  EXPECT_EQ(muster_.run({"pull", "org/tiny"}).exit_code, 0);
}

TEST_F(PullCommand, OfflineIsRefused) {
  muster_.set("HF_HUB_OFFLINE", "1");
  const auto refused = muster_.run({"pull", "org/tiny"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err,
            "muster: HF_HUB_OFFLINE=1 forbids to ask a hub: unset it to fetch a model\n");
  EXPECT_TRUE(hub_.hub_requests().empty());
}

}  // namespace
}  // namespace muster
