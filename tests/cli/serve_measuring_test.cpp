// muster serve while the precision of its only decoder is measured, by a worker that stops there.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/decoder_fixture.h"
#include "net/http_client.h"
#include "run_muster.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class ServeMeasuring : public testing::Test {
 protected:
  ServeMeasuring() {
    const auto model = muster_.folder() / "model";
    write_counting_decoder(model);
    const std::filesystem::path weights(MUSTER_SOURCE_DIR "/src/engine/testdata/decoders/llama");
    for (const auto* name : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(weights / name, model / name,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    muster_.set("COUNTING_WORKER", "hang_at_probe");
  }
  ~ServeMeasuring() override {
    if (pid_ > 0) end();
  }

  static Words words_of(const std::string& listen, const std::string& logs) {
    return {"serve",
            "chat=./model",
            "--listen",
            listen,
            "--log-dir",
            logs,
            "--cache-dir",
            "cache",
            "--devices",
            "1xcpu",
            "--torch-root",
            "torch",
            "--worker-program",
            MUSTER_BINARY_DIR "/bin/counting_worker"};
  }

  // Until its worker measures.
  void serve() {
    pid_ = muster_.start(words_of("127.0.0.1:0", "logs"));
    wait_until([&] { return log().find("to try it: ") != std::string::npos; });
    const auto text = log();
    const auto at = text.find("http://", text.find("listening on "));
    url_ = text.substr(at, text.find_first_of(" \n", at) - at);
    client_ = *HttpClient::open(url_);
    wait_until([&] { return log().find("chat: measuring which precision") != std::string::npos; });
  }

  Finished end() {
    ::kill(pid_, SIGTERM);
    return muster_.wait(std::exchange(pid_, 0));
  }

  template <typename Claim>
  void wait_until(const Claim& is_so) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_so()) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << muster_.read("stderr") << log();
      std::this_thread::yield();
    }
  }

  HttpAnswer get(const std::string& path) const {
    const auto answer = client_->call("GET", path);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer ? *answer : HttpAnswer{};
  }

  std::string log() const { return muster_.read("logs/muster.log"); }

  Muster muster_{"serve_measuring"};
  std::unique_ptr<HttpClient> client_;
  std::string url_;
  pid_t pid_ = 0;
};

// The measurement would take five minutes, and the end waits for nothing of it.
TEST_F(ServeMeasuring, ItListensMeanwhileAndEndsAtOnce) {
  serve();
  EXPECT_EQ(get("/livez").status, 200);
  const auto ready = get("/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(Json::parse(ready.body)["reason"], "chat: its precision is being measured");
  const auto finished = end();
  EXPECT_EQ(finished.exit_code, 0) << finished.err << log();
}

TEST_F(ServeMeasuring, APortThatIsTakenIsToldBeforeAnythingIsMeasured) {
  serve();
  const auto second = muster_.run(words_of(url_.substr(std::string("http://").size()), "others"));
  EXPECT_NE(second.exit_code, 0);
  EXPECT_NE(second.err.find("another program listens there"), std::string::npos) << second.err;
  EXPECT_EQ(muster_.read("others/muster.log").find("measuring"), std::string::npos);
}

TEST_F(ServeMeasuring, ItEndsWhereTheWorkersOfItsOnlyModelNeverStart) {
  muster_.set("COUNTING_WORKER", "exit_at_load");
  auto words = words_of("127.0.0.1:0", "logs");
  words.insert(words.end(), {"--precision", "own"});
  const auto finished = muster_.run(words);
  EXPECT_EQ(finished.exit_code, 6) << log();
  EXPECT_TRUE(finished.err.ends_with(
      "muster: no device can load what is to be served: chat: cpu:0: its worker ended with exit "
      "code 3; it last said: told to exit\n"))
      << finished.err;
}

}  // namespace
}  // namespace muster
