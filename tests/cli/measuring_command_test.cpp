// Commands that measure which precision is fastest before they compute: what they show meanwhile,
// and how they end when it does not come to its end. counting_worker stands in for the engine.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "coordinator/decoder_fixture.h"
#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;
constexpr auto kMeasuringLimit = std::chrono::seconds(60);

/// A decoder with weights, of which fp32 and bf16 are compared.
class MeasuringCommand : public testing::Test {
 protected:
  MeasuringCommand() {
    namespace fs = std::filesystem;
    const auto model = muster_.folder() / "model";
    write_counting_decoder(model);
    const auto weights = fs::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama";
    for (const auto* name : {"config.json", "model.safetensors"}) {
      fs::copy_file(weights / name, model / name, fs::copy_options::overwrite_existing);
    }
    muster_.write("p.txt", "m\n");
  }

  static Words with_worker(Words words) {
    for (const auto* word : {"--devices", "cpu:0", "--torch-root", "torch", "--worker-program",
                             MUSTER_BINARY_DIR "/bin/counting_worker", "--max-tokens", "4"}) {
      words.emplace_back(word);
    }
    return words;
  }

  void wait_for_measuring() const {
    const auto begin = std::chrono::steady_clock::now();
    while (muster_.read("stderr").find("measuring which precision") == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now() - begin, kMeasuringLimit)
          << muster_.read("stderr");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  Muster muster_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

// What a shell shows is the same where the signal itself ends the program: the sentence tells.
TEST_F(MeasuringCommand, ASignalEndsItWithASentence) {
  muster_.set("COUNTING_WORKER", "hang_at_probe");
  for (const Words& words :
       {Words{"generate", "model", "-p", "m", "--raw"}, Words{"chat", "model"}}) {
    for (const int number : {SIGINT, SIGTERM}) {
      const auto pid = muster_.start(with_worker(words), "p.txt");
      ASSERT_NO_FATAL_FAILURE(wait_for_measuring());
      ::kill(pid, number);
      const auto finished = muster_.wait(pid);
      EXPECT_EQ(finished.exit_code, 128 + number);
      EXPECT_EQ(finished.out, "");
      EXPECT_TRUE(finished.err.ends_with(
          "\nmuster: stopped while the precision was measured; nothing is kept\n"))
          << words.front() << ": " << finished.err;
    }
  }
}

TEST_F(MeasuringCommand, AWorkerThatDiesLeavesTheReplyUnmeasured) {
  muster_.set("COUNTING_WORKER", "die_at_probe");
  const auto generated = muster_.run(with_worker({"generate", "model", "-p", "m", "--raw"}));
  EXPECT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_EQ(generated.out, "nopq\n");
  EXPECT_NE(generated.err.find("not measured: cpu:0: the worker died ("), std::string::npos)
      << generated.err;
  const auto talked = muster_.run(with_worker({"chat", "model"}), "p.txt");
  EXPECT_EQ(talked.exit_code, 0) << talked.err;
  EXPECT_EQ(talked.out, "nopq\n");
  EXPECT_NE(talked.err.find("not measured: cpu:0: the worker died ("), std::string::npos)
      << talked.err;
}

TEST_F(MeasuringCommand, TheBarOfPromptsSaysWhatIsDone) {
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_GE(terminal.get(), 0);
  ASSERT_EQ(::grantpt(terminal.get()), 0);
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  const std::string name = ::ptsname(terminal.get());
  const UniqueFd other_end(::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_GE(other_end.get(), 0);
  muster_.set("COUNTING_WORKER", "hang_at_probe");
  muster_.set("TERM", "xterm");
  muster_.show_errors_on(name);
  const auto pid =
      muster_.start(with_worker({"generate", "model", "--prompts", "p.txt", "-o", "r.jsonl"}));
  std::string screen;
  const auto begin = std::chrono::steady_clock::now();
  while (screen.find("measuring precisions") == std::string::npos &&
         std::chrono::steady_clock::now() - begin < kMeasuringLimit) {
    pollfd ready{terminal.get(), POLLIN, 0};
    if (::poll(&ready, 1, 100) <= 0) continue;
    std::array<char, 256> piece{};
    const auto size = ::read(terminal.get(), piece.data(), piece.size());
    if (size <= 0) break;
    screen.append(piece.data(), static_cast<std::size_t>(size));
  }
  EXPECT_NE(screen.find("measuring precisions"), std::string::npos) << screen;
  ::kill(pid, SIGINT);
  EXPECT_EQ(muster_.wait(pid).exit_code, 128 + SIGINT);
}

}  // namespace
}  // namespace muster
