#include "bench/child/child_server.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "net/http_client.h"
#include "net/http_server.h"

namespace muster {
namespace {

using std::chrono::seconds;

const auto kNever = [] { return false; };

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

// Waits for its end; false where it still runs at the limit.
bool has_ended(const ChildServer& child) {
  const auto limit = std::chrono::steady_clock::now() + seconds(20);
  while (child.check_running()) {
    if (std::chrono::steady_clock::now() > limit) return false;
  }
  return true;
}

TEST(ChildServer, ReadsTheAddressThatTheProgramPrints) {
  const auto child =
      ChildServer::start(shell("echo starting; echo 'x listening on http://127.0.0.1:8123 now' "
                               ">&2; exec cat /dev/zero >/dev/null"),
                         seconds(20), kNever);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ((*child)->url(), "http://127.0.0.1:8123");
  // It computes; the kernel counts in ticks of ten milliseconds.
  while ((*child)->cpu_seconds() == 0) {
  }
}

TEST(ChildServer, KnowsTheProcessesThatItHasStarted) {
  const auto child =
      ChildServer::start(shell("sleep 1000 >/dev/null 2>&1 & trap 'kill $!; exit' "
                               "TERM; echo listening on http://127.0.0.1:8123; wait"),
                         seconds(20), kNever);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ((*child)->processes().size(), 2U);
  EXPECT_TRUE((*child)->check_running());
}

TEST(ChildServer, SaysThatTheProgramHasEnded) {
  const auto child = ChildServer::start(shell("trap 'echo no memory >&2; exit 1' TERM; echo "
                                              "listening on http://127.0.0.1:8123; while :; do :; "
                                              "done"),
                                        seconds(20), kNever);
  ASSERT_TRUE(child) << child.error().message;
  ASSERT_EQ(::kill((*child)->processes().front(), SIGTERM), 0);
  ASSERT_TRUE(has_ended(**child));
  EXPECT_EQ((*child)->check_running().error().message, "the server ended: no memory");
}

// What it said last, as "ready", is not why.
TEST(ChildServer, SaysWhichSignalEndedTheProgram) {
  const auto child = ChildServer::start(
      shell("echo listening on http://127.0.0.1:8123; echo ready; exec sleep 1000"), seconds(20),
      kNever);
  ASSERT_TRUE(child) << child.error().message;
  ASSERT_EQ(::kill((*child)->processes().front(), SIGKILL), 0);
  ASSERT_TRUE(has_ended(**child));
  EXPECT_EQ((*child)->check_running().error().message, "the server was ended by signal 9 (Killed)");
  EXPECT_EQ((*child)->wait_until_ready("/readyz", seconds(20), kNever).error().message,
            "the server was ended by signal 9 (Killed)");
}

// One that gives up by abort() says why before.
TEST(ChildServer, SaysWhyTheProgramEndedItself) {
  const auto child = ChildServer::start(
      shell("ulimit -c 0; trap 'echo terminate called >&2; kill -ABRT $$' TERM; echo listening on "
            "http://127.0.0.1:8123; while :; do :; done"),
      seconds(20), kNever);
  ASSERT_TRUE(child) << child.error().message;
  ASSERT_EQ(::kill((*child)->processes().front(), SIGTERM), 0);
  ASSERT_TRUE(has_ended(**child));
  const std::string how = "the server was ended by signal 6 (Aborted): terminate called";
  EXPECT_EQ((*child)->check_running().error().message, how);
  EXPECT_EQ((*child)->wait_until_ready("/readyz", seconds(20), kNever).error().message, how);
}

// Else it would be waited for half a minute, and be killed.
TEST(ChildServer, TellsAProgramThatIsStoppedToEnd) {
  const auto file = ::testing::TempDir() + "child_server." + std::to_string(::getpid());
  auto child = ChildServer::start(shell("sleep 1000 >/dev/null 2>&1 & trap 'echo told > " + file +
                                        "; kill $!; exit' TERM; "
                                        "echo listening on http://127.0.0.1:8123; wait"),
                                  seconds(20), kNever);
  ASSERT_TRUE(child) << child.error().message;
  const auto pid = (*child)->processes().front();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  siginfo_t stopped{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &stopped, WSTOPPED | WNOWAIT), 0);
  (*child).reset();
  EXPECT_TRUE(std::filesystem::exists(file)) << "it was killed";
  std::filesystem::remove(file);
}

TEST(ChildServer, GivesTheProgramTheEnvironmentThatIsAskedFor) {
  const auto child = ChildServer::start(shell("echo \"$A,${HOME:-none}\"; exit 3"), seconds(20),
                                        kNever, std::vector<std::string>{"A=1"});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().message, "/bin/sh ended: 1,none");
}

TEST(ChildServer, SaysWhyAProgramEnded) {
  const auto child =
      ChildServer::start(shell("echo one; echo no model there >&2; exit 3"), seconds(20), kNever);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(child.error().message, "/bin/sh ended: no model there");
}

// Only a sentence of muster with an exit code of a kind is the error itself.
TEST(ChildServer, HasTheErrorThatMusterEndedWith) {
  const auto ended_with = [](const std::string& code) {
    return ChildServer::start(shell("echo one; echo 'muster: x: no model' >&2; exit " + code),
                              seconds(20), kNever)
        .error();
  };
  EXPECT_EQ(ended_with("3").kind, ErrorKind::NotFound);
  EXPECT_EQ(ended_with("3").message, "x: no model");
  EXPECT_EQ(ended_with("8").kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(ended_with("1").kind, ErrorKind::Unavailable);
  EXPECT_EQ(ended_with("1").message, "/bin/sh ended: muster: x: no model");
}

TEST(ChildServer, HasTheErrorThatMusterEndedWithBeforeItWasReady) {
  const auto child = ChildServer::start(shell("trap 'echo muster: no memory >&2; exit 8' TERM; "
                                              "echo listening on http://127.0.0.1:1; while :; do "
                                              ":; done"),
                                        seconds(20), kNever);
  ASSERT_TRUE(child) << child.error().message;
  ASSERT_EQ(::kill((*child)->processes().front(), SIGTERM), 0);
  const auto ended = (*child)->wait_until_ready("/readyz", seconds(20), kNever);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(ended.error().message, "no memory");
}

TEST(ChildServer, RefusesAProgramThatIsNotThere) {
  const auto child = ChildServer::start({"/no/such/program"}, seconds(20), kNever);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().kind, ErrorKind::NotFound);
}

TEST(ChildServer, GivesUpWhenTheTimeIsOverOrSomebodyAsks) {
  const auto silent = shell("exec sleep 1000");
  EXPECT_EQ(ChildServer::start(silent, std::chrono::milliseconds(50), kNever).error().kind,
            ErrorKind::DeadlineExceeded);
  EXPECT_EQ(ChildServer::start(silent, seconds(20), [] { return true; }).error().kind,
            ErrorKind::Cancelled);
}

// It takes the question and never answers. Only the time shows that nobody has waited for that.
TEST(ChildServer, IsNotWaitedForWhenSomebodyAsks) {
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  std::vector<HttpRespond> held;
  std::atomic<bool> is_asked = false;
  const auto server =
      HttpServer::start(options, [&](const HttpRequest&, const HttpRespond& respond) {
        held.push_back(respond);
        is_asked = true;
      });
  ASSERT_TRUE(server);
  const auto child = ChildServer::start(
      shell("echo listening on http://127.0.0.1:" + std::to_string((*server)->port()) +
            "; exec sleep 1000"),
      seconds(20), kNever);
  ASSERT_TRUE(child) << child.error().message;
  const auto begin = std::chrono::steady_clock::now();
  const auto ended =
      (*child)->wait_until_ready("/readyz", seconds(600), [&] { return is_asked.load(); });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::Cancelled);
  // A call alone waits two minutes for its answer.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(60));
}

TEST(ChildServer, WaitsUntilTheServerIsReady) {
  // The server is this process; the child only names it.
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  std::atomic<int> asked = 0;
  const auto server =
      HttpServer::start(options, [&](const HttpRequest&, const HttpRespond& respond) {
        respond({.status = ++asked < 3 ? 503 : 200, .body = "x"});
      });
  ASSERT_TRUE(server);
  const auto child = ChildServer::start(
      shell("echo listening on http://127.0.0.1:" + std::to_string((*server)->port()) +
            "; exec sleep 1000"),
      seconds(20), kNever);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_TRUE((*child)->wait_until_ready("/readyz", seconds(20), kNever));
  EXPECT_EQ(asked, 3);
  // Whatever an answer is to say: here the same word from the sixth question on.
  const auto is_sixth = [&](const HttpAnswer& answer) { return answer.body == "x" && asked == 6; };
  EXPECT_TRUE((*child)->wait_for_answer("/v1/devices", is_sixth, seconds(20), kNever));
  EXPECT_EQ(asked, 6);
  // An answer after which waiting is of no use.
  const auto is_hopeless = [](const HttpAnswer&) -> Result<bool> {
    return Error{ErrorKind::Unsupported, "no fp16"};
  };
  const auto given_up = (*child)->wait_for_answer("/v1/devices", is_hopeless, seconds(20), kNever);
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(given_up.error().message, "no fp16");
  EXPECT_EQ(asked, 7) << "and was not asked again";
}

}  // namespace
}  // namespace muster
