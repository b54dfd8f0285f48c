// muster serve: where clients come in beside a port, one key without a file, the devices of a plan.

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

#include "net/http_client.h"
#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

class ServePlaces : public testing::Test {
 protected:
  ~ServePlaces() override {
    if (pid_ > 0) end();
  }

  static Words words_of(const Words& more) {
    Words words{"serve", tiny_model(), "--log-dir", "logs", "--cache-dir", "cache"};
    for (const auto* word :
         {"--torch-root", "torch", "--worker-program", MUSTER_BINARY_DIR "/bin/zero_worker"}) {
      words.emplace_back(word);
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Until it says where it listens.
  void serve(const Words& more) {
    muster_.set("ZERO_WORKER", "echo dim=32");  // rows as the model has
    pid_ = muster_.start(words_of(more));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (log().find("to try it: ") == std::string::npos) {  // the last line of a start
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << muster_.read("stderr") << log();
      std::this_thread::yield();
    }
  }

  Finished end() {
    ::kill(pid_, SIGTERM);
    return muster_.wait(std::exchange(pid_, 0));
  }

  std::string log() const { return muster_.read("logs/muster.log"); }
  std::string socket() const { return (muster_.folder() / "s").string(); }

  int status(const std::string& url, const std::string& path, const HttpHeaders& headers = {}) {
    const auto client = HttpClient::open(url);
    const auto answer = (*client)->call("GET", path, headers);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer ? answer->status : 0;
  }

  std::string port_url() const {
    const auto text = log();
    const auto at = text.find("http://", text.find("listening on "));
    return text.substr(at, text.find_first_of(" \n", at) - at);
  }

  Muster muster_{"serve_places"};
  pid_t pid_ = 0;
};

TEST_F(ServePlaces, AUnixSocketInThePlaceOfAPort) {
  serve({"--listen", "none", "--unix-socket", "s", "--devices", "1xcpu"});
  EXPECT_NE(log().find("listening on unix:s\n"), std::string::npos) << log();
  EXPECT_NE(log().find("no keys: who may write s (mode 0600) may ask, and this user and root may "
                       "change settings"),
            std::string::npos)
      << log();
  EXPECT_NE(log().find("to try it: curl -s --unix-socket s http://localhost/v1/embeddings"),
            std::string::npos)
      << log();
  EXPECT_EQ(std::filesystem::status(socket()).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(status("unix:" + socket(), "/livez"), 200);

  // The program's own clients reach it there, also what is for this machine alone.
  const auto seen = muster_.run({"ctl", "status", "--server", "unix:s"});
  EXPECT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_NE(seen.out.find("cpu:0"), std::string::npos) << seen.out;
  EXPECT_EQ(muster_.run({"ctl", "drain", "cpu:0", "--server", "unix:s"}).exit_code, 0);
  const auto restarted = muster_.run({"ctl", "restart", "all", "--server", "unix:s"});
  EXPECT_NE(restarted.out.find("cpu:0: drained, and stays so\n"), std::string::npos)
      << restarted.out << restarted.err;
  EXPECT_EQ(muster_.run({"ctl", "resume", "cpu:0", "--server", "unix:s"}).exit_code, 0);
  muster_.write("in.txt", "a text\nanother\n");
  const auto embedded = muster_.run({"embed", "--server", "unix:s", "in.txt", "-o", "x.npy"});
  EXPECT_EQ(embedded.exit_code, 0) << embedded.err;
  EXPECT_TRUE(muster_.exists("x.npy"));

  const auto finished = end();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_FALSE(std::filesystem::exists(socket())) << "the server takes its socket away";
  const auto gone = muster_.run({"ctl", "status", "--server", "unix:s"});
  EXPECT_EQ(gone.exit_code, 6);
  EXPECT_NE(gone.err.find("unix:s: cannot connect: No such file or directory"), std::string::npos)
      << gone.err;
}

TEST_F(ServePlaces, AModelThatIsNotLoadedIsExplainedByCtl) {
  serve({"--listen", "none", "--unix-socket", "s", "--devices", "1xcpu"});
  const auto failed = muster_.run({"ctl", "load", "org/absent", "--server", "unix:s"});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_TRUE(failed.err.starts_with("muster: the server says 404: The model cannot be loaded: "))
      << failed.err;
  EXPECT_TRUE(failed.err.ends_with(
      "); if its cache lacks the model: muster pull org/absent, on the server's machine\n"))
      << failed.err;
  // The id leads to the true reason.
  const auto at = failed.err.find(" (request ") + std::string(" (request ").size();
  const auto id = failed.err.substr(at, failed.err.find(')', at) - at);
  EXPECT_EQ(id.size(), 32U) << failed.err;
  const auto folder = muster_.run({"ctl", "load", "./absent", "--server", "unix:s"});
  EXPECT_EQ(folder.err.find("muster pull"), std::string::npos) << folder.err;
  EXPECT_EQ(end().exit_code, 0);
  const auto text = log();
  const auto reason = text.find("model org/absent: not loaded: ");
  ASSERT_NE(reason, std::string::npos) << text;
  EXPECT_NE(text.substr(reason, text.find('\n', reason) - reason).find("[request " + id + "]"),
            std::string::npos)
      << text;
}

TEST_F(ServePlaces, AUnixSocketBesideAPortTakesThePlaceOfADeadOneAlone) {
  serve({"--listen", "127.0.0.1:0", "--unix-socket", "s", "--unix-socket-mode", "0660", "--devices",
         "1xcpu"});
  EXPECT_NE(log().find(" and unix:s\n"), std::string::npos) << log();
  EXPECT_EQ(std::filesystem::status(socket()).permissions(), std::filesystem::perms(0660));
  EXPECT_EQ(status("unix:" + socket(), "/livez"), 200);
  EXPECT_EQ(status(port_url(), "/livez"), 200);
  const auto second = muster_.run(words_of({"--listen", "none", "--unix-socket", "s"}));
  EXPECT_EQ(second.exit_code, 6);
  EXPECT_NE(second.err.find("s: another program listens there"), std::string::npos) << second.err;

  ::kill(pid_, SIGKILL);
  muster_.wait(std::exchange(pid_, 0));
  EXPECT_TRUE(std::filesystem::exists(socket())) << "a killed server leaves it";
  muster_.write("logs/muster.log", "");
  serve({"--listen", "none", "--unix-socket", "s", "--devices", "1xcpu"});
  EXPECT_EQ(status("unix:" + socket(), "/livez"), 200);
  EXPECT_EQ(end().exit_code, 0);
}

TEST_F(ServePlaces, SaysWhatIsWrongWithAPlace) {
  const auto error_of = [&](const Words& more) {
    const auto finished = muster_.run(words_of(more));
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    return finished.err;
  };
  EXPECT_EQ(error_of({"--listen", "none"}),
            "muster: --listen: without a port the server needs unix_socket, or nobody could come "
            "in\n");
  EXPECT_EQ(error_of({"--unix-socket", "s", "--unix-socket-mode", "0060"}),
            "muster: --unix-socket-mode: a mode such as 0600 or 0660, with the owner's 06: "
            "\"0060\"\n");
  muster_.write("notes.txt", "text\n");
  EXPECT_NE(error_of({"--listen", "none", "--unix-socket", "notes.txt", "--devices", "1xcpu"})
                .find("notes.txt: a file is there that is no socket"),
            std::string::npos);
  EXPECT_EQ(muster_.read("notes.txt"), "text\n");
}

TEST_F(ServePlaces, OneKeyWithoutAFileLetsInAndIsNeverShown) {
  const std::string key = "sesame-5d41402abc4b2a76";
  muster_.set("MUSTER_API_KEY", key);
  serve({"--listen", "127.0.0.1:0", "--devices", "1xcpu", "--audit-log", "audit.jsonl"});
  EXPECT_NE(log().find("keys: one, which may do everything\n"), std::string::npos) << log();
  const auto url = port_url();
  EXPECT_EQ(status(url, "/v1/models"), 401);
  EXPECT_EQ(status(url, "/v1/models", {{"Authorization", "Bearer sesame"}}), 401);
  EXPECT_EQ(status(url, "/v1/models", {{"Authorization", "Bearer " + key}}), 200);
  // Every scope: embed, read and admin. The program's clients take the same variable.
  const auto drained = muster_.run({"ctl", "drain", "cpu:0", "--server", url});
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_EQ(muster_.run({"ctl", "resume", "cpu:0", "--server", url}).exit_code, 0);
  muster_.set("MUSTER_API_KEY", "");
  EXPECT_EQ(muster_.run({"ctl", "drain", "cpu:0", "--server", url}).exit_code, 2);
  const auto client = HttpClient::open(url);
  const auto shown = (*client)->call("GET", "/v1/config", {{"Authorization", "Bearer " + key}});
  ASSERT_TRUE(shown);
  EXPECT_EQ(nlohmann::json::parse(shown->body)["api_key"]["value"], "(set)");
  const auto finished = end();
  for (const auto& text :
       {log(), muster_.read("audit.jsonl"), finished.err, finished.out, shown->body}) {
    EXPECT_EQ(text.find("sesame"), std::string::npos) << text;
  }
  EXPECT_NE(muster_.read("audit.jsonl").find("api_key"), std::string::npos);
}

TEST_F(ServePlaces, AKeyOnTheCommandLineIsWarnedOf) {
  serve({"--listen", "127.0.0.1:0", "--devices", "1xcpu", "--api-key", "sesame"});
  EXPECT_NE(log().find("--api-key: other users of this machine see flags in the list of "
                       "processes; MUSTER_API_KEY and --keys-file keep the key from them\n"),
            std::string::npos)
      << log();
  EXPECT_EQ(end().exit_code, 0);
  EXPECT_EQ(log().find("sesame"), std::string::npos) << log();

  const auto listed = muster_.run({"config", "--api-key", "sesame"});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_NE(listed.out.find("(set)"), std::string::npos) << listed.out;
  EXPECT_EQ(listed.out.find("sesame"), std::string::npos) << listed.out;
  EXPECT_EQ(muster_.run({"config", "--json", "--api-key", "sesame"}).out.find("sesame"),
            std::string::npos);
  const auto blank = muster_.run(words_of({"--devices", "1xcpu", "--api-key", "open sesame"}));
  EXPECT_EQ(blank.exit_code, 2);
  EXPECT_EQ(blank.err,
            "muster: --api-key: a key has up to 512 visible ASCII characters, and no blanks\n");
  muster_.write("keys.yaml", "keys: []\n");
  const auto both = muster_.run(
      words_of({"--devices", "1xcpu", "--api-key", "sesame", "--keys-file", "keys.yaml"}));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_EQ(both.err, "muster: --api-key: keys_file says who is let in, too: give one of them\n");
}

TEST_F(ServePlaces, TheDevicesOfAPlan) {
  const auto plan = [&](const Words& more) {
    Words words{"plan", tiny_model()};
    words.insert(words.end(), more.begin(), more.end());
    const auto made = muster_.run(words);
    EXPECT_EQ(made.exit_code, 0) << made.err;
  };
  plan({"--machine", "2xcpu", "--strategy", "replicate", "-o", "plan.yaml"});
  serve({"--listen", "127.0.0.1:0", "--plan", "plan.yaml"});
  EXPECT_NE(log().find("devices: cpu:0"), std::string::npos) << log();
  EXPECT_NE(log().find(", cpu:1"), std::string::npos) << log();
  EXPECT_EQ(end().exit_code, 0);

  const auto refusal = [&](const Words& more) {
    const auto finished = muster_.run(words_of(more));
    EXPECT_NE(finished.exit_code, 0) << finished.err;
    return finished.err;
  };
  EXPECT_EQ(refusal({"--plan", "plan.yaml", "--devices", "1xcpu"}),
            "muster: --devices 1xcpu and the plan's 2xcpu disagree\n");
  EXPECT_EQ(refusal({"second=" + tiny_model(), "--plan", "plan.yaml"}),
            "muster: --plan is of one model, and 2 are to be served\n");
  EXPECT_NE(refusal({"--plan", "no-plan.yaml"}).find("no-plan.yaml"), std::string::npos);
  muster_.write("split.yaml", [&] {
    auto text = muster_.read("plan.yaml");
    text.replace(text.find("task: embed"), 11, "task: train");
    return text;
  }());
  EXPECT_NE(refusal({"--plan", "split.yaml"}).find("split.yaml"), std::string::npos);
}

}  // namespace
}  // namespace muster
