#include "cli/chat_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace muster {
namespace {

class ChatFileTest : public testing::Test {
 protected:
  ~ChatFileTest() override { std::filesystem::remove(path_); }

  std::string refusal(const std::string& content) {
    EXPECT_TRUE(write_file_atomically(path_, content));
    const auto chat = load_chat(path_);
    EXPECT_FALSE(chat);
    return chat ? "" : chat.error().message.substr(path_.string().size());
  }

  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("chat." + std::to_string(::getpid()) + ".json");
};

TEST_F(ChatFileTest, IsReadBackAsItWasSaved) {
  const ChatFile chat{.system = "Be brief",
                      .messages = {{"user", "Why \"é\"?"}, {"assistant", ""}}};
  ASSERT_TRUE(save_chat(path_, chat));
  const auto again = load_chat(path_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->system, chat.system);
  EXPECT_EQ(again->messages, chat.messages);
  ASSERT_TRUE(save_chat(path_, {})) << "one replaces another";
  EXPECT_TRUE(load_chat(path_)->messages.empty());
}

TEST_F(ChatFileTest, AnotherFileIsNotWrittenOver) {
  ASSERT_TRUE(write_file_atomically(path_, "dear diary"));
  const auto saved = save_chat(path_, {});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(*read_file(path_), "dear diary");
}

// What /save does not know would be gone: "tools" of a request that somebody has written.
TEST_F(ChatFileTest, ARequestWithMoreThanMessagesIsNotWrittenOver) {
  const std::string request = R"({"model": "m", "messages": []})";
  ASSERT_TRUE(write_file_atomically(path_, request));
  ASSERT_TRUE(load_chat(path_));
  EXPECT_FALSE(save_chat(path_, {}));
  EXPECT_EQ(*read_file(path_), request);
}

TEST_F(ChatFileTest, MessagesWithMoreThanATextAreNotWrittenOver) {
  const std::string talk = R"({"messages": [{"role": "user", "name": "ann", "content": "x"},
                                            {"role": "assistant", "content": "y"}]})";
  ASSERT_TRUE(write_file_atomically(path_, talk));
  ASSERT_TRUE(load_chat(path_));
  EXPECT_FALSE(save_chat(path_, {}));
  EXPECT_EQ(*read_file(path_), talk);
}

TEST_F(ChatFileTest, IsTheUsersAloneUnlessItWasOpenedToOthers) {
  namespace fs = std::filesystem;
  constexpr auto kOwn = fs::perms::owner_read | fs::perms::owner_write;
  ASSERT_TRUE(save_chat(path_, {}));
  EXPECT_EQ(fs::status(path_).permissions(), kOwn);
  fs::permissions(path_, kOwn | fs::perms::group_read);
  ASSERT_TRUE(save_chat(path_, {}));
  EXPECT_EQ(fs::status(path_).permissions(), kOwn | fs::perms::group_read);
}

// Without a reader or a writer at its other end whoever opens it waits.
TEST_F(ChatFileTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(save_chat(path_, {}).error().kind, ErrorKind::InvalidArgument);
}

TEST_F(ChatFileTest, RefusesWhatNoConversationIs) {
  EXPECT_EQ(refusal("{"), ": this is no conversation: it is not JSON");
  EXPECT_EQ(refusal(std::string(1000, '[')),
            ": this is no conversation: values are nested too deeply");
  EXPECT_EQ(refusal("[]"), ": this is no conversation: it has no list of messages");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user"}]})"),
            ": this is no conversation: a message lacks its text");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "assistant", "content": "x"}]})"),
            ": this is no conversation: user and assistant do not take turns");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": "x"}]})"),
            ": this is no conversation: its last question has no reply");
}

}  // namespace
}  // namespace muster
