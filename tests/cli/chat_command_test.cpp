// muster chat on the real program, its messages from a pipe, with a stand-in for the engine that
// counts: whatever ends in "az" is continued by "00 11".

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "run_muster.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class ChatCommand : public testing::Test {
 protected:
  ChatCommand() { write_tiny_decoder(muster_, muster_.folder() / "model"); }

  static Words words_of(const Words& more) {
    Words words{"chat",
                "model",
                "--max-tokens",
                "4",
                "--devices",
                "cpu:0",
                "--torch-root",
                "torch",
                "--worker-program",
                MUSTER_BINARY_DIR "/bin/counting_worker"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Finished chat(const std::string& typed, const Words& more = {}) {
    muster_.write("typed", typed);
    return muster_.run(words_of(more), "typed");
  }

  void wait_for(const std::string& file, const std::string& text) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (muster_.read(file).find(text) == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << muster_.read("stderr");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  Muster muster_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ChatCommand, AnswersInTurns) {
  const auto finished = chat("the az\n\nthe \\\naz\n/bye\nnever az\n", {"--quiet"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "00 11\n00 11\n");
  EXPECT_EQ(finished.err, "");
  const auto told = chat("the az\n");
  EXPECT_NE(told.err.find("muster: 4 tokens, the first after "), std::string::npos) << told.err;
  EXPECT_NE(told.err.find("; max-tokens is reached\n"), std::string::npos) << told.err;
}

// A worker that was given no token would end.
TEST_F(ChatCommand, AConversationOfWhichTheTemplateMakesNothingIsRefused) {
  muster_.write("model/chat_template.jinja", "{{ '' }}");
  const auto finished = chat("the az\n");
  EXPECT_NE(finished.err.find("the chat template makes nothing of this conversation"),
            std::string::npos)
      << finished.err;
  EXPECT_EQ(finished.out, "");
}

// Of a model that does not generate there is no precision to tell of.
TEST_F(ChatCommand, AModelThatEmbedsIsRefusedAsGenerateRefusesIt) {
  Words words = words_of({});
  words[1] = tiny_model();
  const auto refused = muster_.run(words);
  words[0] = "generate";
  words.insert(words.end(), {"-p", "az"});
  const auto alike = muster_.run(words);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_EQ(refused.exit_code, alike.exit_code) << refused.err;
  EXPECT_EQ(refused.err, alike.err);
  EXPECT_EQ(refused.err.find("not measured"), std::string::npos) << refused.err;
}

TEST_F(ChatCommand, ItsWorkerKeepsNothingWhereItIsToldSo) {
  muster_.set("COUNTING_WORKER", "no_prefix_cache");
  EXPECT_NE(chat("az\n").err.find("told not to load"), std::string::npos)
      << "it keeps them unless it is told not to";
  const auto finished = chat("az\n", {"--no-prefix-cache"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST_F(ChatCommand, ItsWorkerKeepsKeysAndValuesInWhatItIsTold) {
  muster_.set("COUNTING_WORKER", "int8_cache");
  EXPECT_NE(chat("az\n").err.find("told not to load"), std::string::npos);
  const auto finished = chat("az\n", {"--kv-cache-dtype", "int8"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST_F(ChatCommand, AConversationIsKeptAndGoesOn) {
  const auto first = chat("/set system the\nthe az\n/save talk.json\n");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Json expected{{"messages",
                       {{{"role", "system"}, {"content", "the"}},
                        {{"role", "user"}, {"content", "the az"}},
                        {{"role", "assistant"}, {"content", "00 11"}}}}};
  EXPECT_EQ(Json::parse(muster_.read("talk.json")), expected);
  const auto second =
      chat("az\n/save talk.json\n/clear\n/save none.json\n", {"--load", "talk.json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const auto messages = Json::parse(muster_.read("talk.json"))["messages"];
  ASSERT_EQ(messages.size(), 5U);
  EXPECT_EQ(messages[0]["content"], "the");
  EXPECT_EQ(messages[3]["content"], "az");
  EXPECT_EQ(Json::parse(muster_.read("none.json"))["messages"].size(), 1U) << "the system's text";
}

// The context has 64 tokens.
TEST_F(ChatCommand, TheOldestMessagesGiveWayInALongConversation) {
  std::string typed;
  std::string replies;
  for (int i = 0; i < 12; ++i) {
    typed += "the az\n";
    replies += "00 11\n";
  }
  const auto finished = chat(typed);
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, replies);
  EXPECT_NE(finished.err.find("the context of 64 tokens is full: the oldest 2 messages were left "
                              "out\n"),
            std::string::npos)
      << finished.err;
  std::string longer = "the";
  for (int i = 0; i < 70; ++i) longer += " the";
  const auto refused = chat(longer + "\n");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("it is longer than the context of 64\n"), std::string::npos)
      << refused.err;
}

// A reply of 100 tokens has no room in a context of 64, which is not what --max-tokens says.
TEST_F(ChatCommand, SaysThatTheContextEndedAReply) {
  const auto finished = chat("/set max-tokens 100\nthe az\n/set max-tokens\nthe az\n");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("; the context has no room for more\n"), std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("4 tokens, the first"), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("; max-tokens is reached\n"), std::string::npos) << finished.err;
}

// The file says 64.
TEST_F(ChatCommand, TheContextIsWhatTheWorkerCanDo) {
  muster_.set("COUNTING_WORKER", "length_max=40");
  std::string typed;
  std::string replies;
  for (int i = 0; i < 12; ++i) {
    typed += "the az\n";
    replies += "00 11\n";
  }
  const auto finished = chat(typed + "/show\n");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, replies);
  EXPECT_NE(finished.err.find("the context has 40 tokens\n"), std::string::npos) << finished.err;
}

TEST_F(ChatCommand, AScriptEndsAtAConversationThatIsNotThere) {
  const auto finished = chat("/load none\nthe az\n");
  EXPECT_EQ(finished.exit_code, 3) << finished.err;
  EXPECT_EQ(finished.out, "");
  EXPECT_NE(finished.err.find("none: cannot open: No such file or directory"), std::string::npos)
      << finished.err;
}

TEST_F(ChatCommand, ASignalEndsAScript) {
  muster_.set("COUNTING_WORKER", "wait_at=2");
  muster_.write("typed", "the az\nnever az\n");
  const auto pid = muster_.start(words_of({}), "typed");
  ASSERT_NO_FATAL_FAILURE(wait_for("stdout", "0"));
  ::kill(pid, SIGINT);
  const auto finished = muster_.wait(pid);
  EXPECT_EQ(finished.exit_code, 128 + SIGINT) << finished.err;
  EXPECT_TRUE(finished.out.starts_with("0")) << finished.out;
  EXPECT_NE(finished.err.find("; stopped\n"), std::string::npos) << finished.err;
}

TEST_F(ChatCommand, OnATerminalCtrlCStopsTheReplyAlone) {
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_GE(terminal.get(), 0);
  ASSERT_EQ(::grantpt(terminal.get()), 0);
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  const auto type = [&](const std::string& text) {
    EXPECT_EQ(::write(terminal.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  muster_.set("COUNTING_WORKER", "wait_at=2");
  const auto pid = muster_.start(words_of({}), ::ptsname(terminal.get()));
  type("/sav x\nthe az\n");
  ASSERT_NO_FATAL_FAILURE(wait_for("stdout", "0"));
  ::kill(pid, SIGINT);
  ASSERT_NO_FATAL_FAILURE(wait_for("stderr", "; stopped\n"));
  type("/save talk.json\n/bye\n");
  const auto finished = muster_.wait(pid);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("there is no /sav; nearest is /save\n"), std::string::npos)
      << finished.err;
  const auto messages = Json::parse(muster_.read("talk.json"))["messages"];
  ASSERT_EQ(messages.size(), 2U);
  const std::string reply = messages[1]["content"];
  EXPECT_EQ(finished.out, reply + "\n");
}

TEST_F(ChatCommand, SaysWhatIsWrongWithACommandAndGoesOn) {
  muster_.write("diary", "dear diary");
  const auto finished = chat(
      "/sav x\n/set top_k x\n/set tmperature 1\n/save\n/save diary\n/set top-k 3\n/set top-k\n"
      "/set temperature 0.5\n/set temperature\nthe az\n/show\n");
  ASSERT_EQ(finished.exit_code, 2) << "a script's: " << finished.err;
  EXPECT_EQ(finished.out, "00 11\n");
  for (const auto* said :
       {"there is no /sav; nearest is /save\n", "/set top-k must be a whole number from 0 to ",
        "; such as /set top-k 40\n", "top-k counts where tokens are drawn: /set temperature 0.8\n",
        "/set knows no \"tmperature\"; nearest is temperature\n", "/save wants a file",
        "diary: this file holds more than a conversation or none, and it would be overwritten: "
        "name another file\n",
        "  temperature         0\n", "  2 messages; the context has 64 tokens\n"}) {
    EXPECT_NE(finished.err.find(said), std::string::npos) << said << "\n" << finished.err;
  }
  EXPECT_EQ(muster_.read("diary"), "dear diary");
}

// As the help has it, and as it may be typed.
TEST_F(ChatCommand, AllTokensAreCalledSo) {
  const auto shown = [&](const std::string& typed) { return chat(typed + "/show\n").err; };
  EXPECT_NE(shown("").find("  top-k               all\n"), std::string::npos);
  EXPECT_NE(shown("/set top-k 40\n").find("  top-k               40\n"), std::string::npos);
  EXPECT_NE(shown("/set top-k 40\n/set top-k all\n").find("  top-k               all\n"),
            std::string::npos);
  EXPECT_NE(shown("/set top-k 40\n/set top-k 0\n").find("  top-k               all\n"),
            std::string::npos);
}

TEST_F(ChatCommand, RefusesWhatCannotBeDoneBeforeAnyMessage) {
  EXPECT_EQ(chat("the az\n", {"--context", "3"}).exit_code, 2);
  EXPECT_EQ(chat("the az\n", {"--load", "none.json"}).exit_code, 3);
  EXPECT_EQ(chat("the az\n", {"--top-k", "3"}).exit_code, 2);
}

}  // namespace
}  // namespace muster
