// muster serve with the environments of document 3, word for word: it starts, answers, and says in
// one line what of them it does not do.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "net/http_client.h"
#include "run_muster.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct DocumentEnvironment {
  const char* file;      // of tests/cli/environments
  const char* strategy;  // load_balancing_strategy that it comes to
  const char* unmet;     // what the warning must name
  bool names_model = false;
};

// A line of the file as compose and a shell read it: without "export" and the comment at its end.
std::string assignment_of(std::string line) {
  const std::string word = "export ";
  if (line.rfind(word, 0) == 0) line.erase(0, word.size());
  line.resize(std::min(line.size(), line.find('#')));
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

class DocumentEnvironments : public testing::TestWithParam<DocumentEnvironment> {
 protected:
  ~DocumentEnvironments() override {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) muster_.wait(pid_);
  }

  // The document's container has /app; here it is the folder of the test.
  void set_environment(const std::string& name) {
    std::ifstream file(std::string(MUSTER_SOURCE_DIR) + "/tests/cli/environments/" + name);
    ASSERT_TRUE(file) << name;
    for (std::string line; std::getline(file, line);) {
      const auto assignment = assignment_of(line);
      const auto equals = assignment.find('=');
      if (equals == std::string::npos) continue;
      auto value = assignment.substr(equals + 1);
      if (value.rfind("/app/", 0) == 0) value = (muster_.folder() / value.substr(1)).string();
      muster_.set(assignment.substr(0, equals), value);
    }
  }

  // The document's model, as far as a test of the environment needs one.
  void put_model_in_hub() {
    const auto model = muster_.folder() / "hf/hub/models--sentence-transformers--all-mpnet-base-v2";
    fs::create_directories(model / "refs");
    fs::create_directories(model / "snapshots");
    fs::create_directory_symlink(tiny_model(), model / "snapshots" / "abc");
    std::ofstream(model / "refs" / "main") << "abc";
    muster_.set("HF_HOME", (muster_.folder() / "hf").string());
  }

  void serve(bool names_model) {
    Words words{"serve", "--listen", "127.0.0.1:0", "--log-dir", "logs", "--devices", "2xcpu"};
    for (const auto* word : {"--cache-dir", "cache", "--torch-root", "torch", "--worker-program",
                             MUSTER_BINARY_DIR "/bin/zero_worker"}) {
      words.emplace_back(word);
    }
    if (!names_model) words.push_back(tiny_model());
    muster_.set("ZERO_WORKER", "echo dim=32");  // rows as the model has
    pid_ = muster_.start(words);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const std::string listening = "listening on ";
    std::string log;
    while (log.find(listening) == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << log;
      std::this_thread::yield();
      log = muster_.read("logs/muster.log");
    }
    const auto at = log.find("http://", log.find(listening));
    client_ = *HttpClient::open(log.substr(at, log.find('\n', at) - at));
  }

  Finished end() {
    ::kill(pid_, SIGTERM);
    return muster_.wait(std::exchange(pid_, 0));
  }

  Muster muster_{std::string("environment_") + GetParam().strategy + "_" +
                 std::to_string(std::string(GetParam().file).size())};
  std::unique_ptr<HttpClient> client_;
  pid_t pid_ = 0;
};

TEST_P(DocumentEnvironments, StartTheServerWithOneWarning) {
  set_environment(GetParam().file);
  put_model_in_hub();
  serve(GetParam().names_model);
  const auto models = client_->call("GET", "/v1/models", {});
  ASSERT_TRUE(models);
  const std::string model = nlohmann::json::parse(models->body)["data"][0]["id"];
  const auto body = nlohmann::json{{"model", model}, {"input", "a text"}}.dump();
  const auto answer =
      client_->call("POST", "/v1/embeddings", {{"Content-Type", "application/json"}}, body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200) << answer->body << muster_.read("logs/muster.log");
  const auto config = nlohmann::json::parse(client_->call("GET", "/v1/config", {})->body);
  EXPECT_EQ(config["load_balancing_strategy"]["value"], GetParam().strategy);

  const auto finished = end();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err.rfind("muster: warning: the environment asks for", 0), 0U) << finished.err;
  EXPECT_EQ(finished.err.find("warning", finished.err.find('\n')), std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find(GetParam().unmet), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("EMBEDDING_BATCH_SIZE (muster cuts batches by tokens"),
            std::string::npos)
      << finished.err;
  EXPECT_EQ(finished.err.find("your_password"), std::string::npos) << finished.err;
  EXPECT_EQ(muster_.exists("app/logs/gpu_stats.jsonl"), GetParam().names_model);
}

INSTANTIATE_TEST_SUITE_P(
    OfDocument3, DocumentEnvironments,
    testing::Values(DocumentEnvironment{"sample.env", "auto",
                                        "USE_TENSORRT=true, TENSORRT_CACHE_DIR, "
                                        "TENSORRT_INT8_CALIBRATION_CACHE (muster has no TensorRT",
                                        true},
                    DocumentEnvironment{"throughput.env", "memory_usage",
                                        "TENSORRT_PRECISION=int8 (a GPU computes in fp32"},
                    DocumentEnvironment{"latency.env", "compute_load", "USE_TENSORRT=true ("},
                    DocumentEnvironment{"balanced.env", "auto", "USE_TENSORRT=true ("}),
    [](const auto& info) {
      const std::string file = info.param.file;
      return file.substr(0, file.find('.'));
    });

}  // namespace
}  // namespace muster
