// `muster embed --server` against `muster serve`, both as programs: the bytes must be those of a
// run on devices of its own, also when the server is killed meanwhile.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "integration/program.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class EmbedServerTest : public testing::Test {
 protected:
  EmbedServerTest()
      : folder_(fs::path(testing::TempDir()) / ("embed_server." + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "torch/lib");
    ::setenv("ZERO_WORKER", "echo dim=32", 1);
    // What `--torch-root` looks for; the test worker needs no torch.
    std::ofstream(folder_ / "torch/lib/libtorch_cpu.so").flush();
    std::ofstream(folder_ / "torch/version.py") << "__version__ = '2.11.0+cpu'\n";
    std::ofstream input(folder_ / "in.txt");
    for (int i = 0; i < 20'000; ++i) {
      input << "text " << i * 7919LL % 100'003 << " the text " << std::string(i % 40, 'a') << "\n";
    }
  }
  ~EmbedServerTest() override {
    if (server_) kill_server();
    ::unsetenv("ZERO_WORKER");
    fs::remove_all(folder_);
  }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  std::unique_ptr<Program> start(std::vector<std::string> words, bool is_here, const char* log) {
    words.insert(words.begin(), std::string(MUSTER_BINARY_DIR) + "/bin/muster");
    if (is_here) {
      for (const auto& word :
           {std::string("--devices"), std::string("2xcpu"), std::string("--precision"),
            std::string("fp32"), std::string("--worker-program"),
            std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker", std::string("--torch-root"),
            path("torch"), std::string("--cache-dir"), path("cache")}) {
        words.push_back(word);
      }
    }
    return std::make_unique<Program>(std::move(words), path(log));
  }

  static std::string model() { return std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny"; }

  /// Waits for the line that names the address. port: 0 the first time.
  void start_server() {
    fs::remove(path("serve.log"));
    server_ = start({"serve", model(), "--listen", "127.0.0.1:" + std::to_string(port_)}, true,
                    "serve.log");
    const std::string mark = "http://127.0.0.1:";
    for (;;) {
      const auto log = read_file(path("serve.log"));
      const auto at = log ? log->find(mark) : std::string::npos;
      if (at != std::string::npos && log->find('\n', at) != std::string::npos) {
        port_ = std::stoi(log->substr(at + mark.size()));
        return;
      }
      ASSERT_FALSE(ends_within(server_->pidfd(), 10)) << (log ? *log : "");
    }
  }

  void kill_server() {
    ::kill(server_->pid(), SIGKILL);
    server_->wait();
    server_.reset();
  }

  std::unique_ptr<Program> embed(const std::string& out, bool resume = false) {
    std::vector<std::string> words{
        "embed",          "--server",     "http://127.0.0.1:" + std::to_string(port_),
        "tiny",           path("in.txt"), "-o",
        path(out.c_str())};
    words.emplace_back(resume ? "--resume" : "--quiet");
    return start(std::move(words), false, "embed.log");
  }

  std::string bytes_of(const std::string& stem) const {
    return *read_file(folder_ / (stem + ".npy")) +
           *read_file(folder_ / (stem + ".npy.index.jsonl"));
  }

  const fs::path folder_;
  int port_ = 0;
  std::unique_ptr<Program> server_;
};

TEST_F(EmbedServerTest, GivesTheBytesOfARunOnDevicesOfItsOwnThoughTheServerDies) {
  ASSERT_EQ(
      start({"embed", model(), path("in.txt"), "-o", path("here.npy"), "--quiet"}, true, "here.log")
          ->wait(),
      0)
      << *read_file(path("here.log"));
  start_server();
  ASSERT_EQ(embed("there.npy")->wait(), 0) << *read_file(path("embed.log"));
  EXPECT_TRUE(bytes_of("there") == bytes_of("here"));

  // Killed as soon as rows have come, and back at once: the run notices and goes on.
  const auto run = embed("again.npy");
  while (!fs::exists(path("again.npy.part")) && !ends_within(run->pidfd(), 1)) {
  }
  kill_server();
  start_server();
  EXPECT_EQ(run->wait(), 0) << *read_file(path("embed.log"));
  EXPECT_TRUE(bytes_of("again") == bytes_of("here"));
}

TEST_F(EmbedServerTest, GoesOnWithResumeAfterAnInterrupt) {
  start_server();
  ASSERT_EQ(embed("whole.npy")->wait(), 0) << *read_file(path("embed.log"));
  const auto run = embed("stopped.npy");
  while (!fs::exists(path("stopped.npy.part")) && !ends_within(run->pidfd(), 1)) {
  }
  ::kill(server_->pid(), SIGSTOP);  // no answer comes before the interrupt does
  ::kill(run->pid(), SIGINT);
  const int code = run->wait();
  ::kill(server_->pid(), SIGCONT);
  ASSERT_EQ(code, 128 + SIGINT) << *read_file(path("embed.log"));
  EXPECT_EQ(embed("stopped.npy", true)->wait(), 0) << *read_file(path("embed.log"));
  EXPECT_TRUE(bytes_of("stopped") == bytes_of("whole"));
}

TEST_F(EmbedServerTest, RefusesWhatTheServerHasSettled) {
  start_server();
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"embed", "--server", "http://127.0.0.1:" + std::to_string(port_)});
    words.insert(words.end(), {path("in.txt"), "-o", path("no.npy")});
    EXPECT_EQ(start(std::move(words), false, "no.log")->wait(), 2);
    return *read_file(path("no.log"));
  };
  EXPECT_NE(refused({"--devices", "1xcpu"}).find("--devices cannot be used with --server"),
            std::string::npos);
  EXPECT_NE(refused({"--no-normalize"}).find("--no-normalize cannot be used with --server"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path("no.npy.part")));
}

}  // namespace
}  // namespace muster
