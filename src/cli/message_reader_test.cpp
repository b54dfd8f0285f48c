#include "cli/message_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "base/unique_fd.h"

namespace muster {
namespace {

std::vector<std::string> messages_of(const std::string& typed) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const UniqueFd read_end(ends[0]);
  {
    const UniqueFd write_end(ends[1]);
    EXPECT_EQ(::write(write_end.get(), typed.data(), typed.size()),
              static_cast<ssize_t>(typed.size()));
  }
  MessageReader reader(read_end.get(), [](bool) {});
  std::vector<std::string> messages;
  for (;;) {
    const auto next = reader.next([] { return false; });
    EXPECT_TRUE(next);
    if (!next || next->why != MessageReader::Why::Message) return messages;
    messages.push_back((next->message.is_command ? "command: " : "") + next->message.text);
  }
}

using Messages = std::vector<std::string>;

TEST(MessageReader, ALineIsAMessage) {
  EXPECT_EQ(messages_of("one\r\n\n two \n/help\nlast"),
            (Messages{"one", "", " two ", "command: /help", "last"}));
  EXPECT_EQ(messages_of(""), Messages{});
}

TEST(MessageReader, ABackslashGoesOnWithTheNextLine) {
  EXPECT_EQ(messages_of("one\\\ntwo\\\n\nthree\\"), (Messages{"one\ntwo\n", "three"}));
  EXPECT_EQ(messages_of("one\\\n/two\n"), (Messages{"one\n/two"})) << "no command within one";
  EXPECT_EQ(messages_of("/set system one\\\ntwo\n/set x\\"),
            (Messages{"command: /set system one\ntwo", "command: /set x"}));
}

TEST(MessageReader, QuotesHoldLinesAsTheyAre) {
  EXPECT_EQ(messages_of("\"\"\"/a\\\n\nb\"\"\"\nc\n"), (Messages{"/a\\\n\nb", "c"}));
  EXPECT_EQ(messages_of("\"\"\"one\"\"\"\n\"\"\"two"), (Messages{"one", "two"}));
}

TEST(MessageReader, ALineThatATerminalMayHaveCutIsMarked) {
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  ASSERT_GE(terminal.get(), 0);
  ASSERT_EQ(::grantpt(terminal.get()), 0);
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  const UniqueFd side(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY));
  ASSERT_GE(side.get(), 0);
  termios modes{};
  ASSERT_EQ(::tcgetattr(side.get(), &modes), 0);
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  ASSERT_EQ(::tcsetattr(side.get(), TCSANOW, &modes), 0);
  MessageReader reader(side.get(), [](bool) {});
  for (const std::size_t size : {4094, 5000}) {
    const auto typed = std::string(size, 'x') + "\n";
    ASSERT_EQ(::write(terminal.get(), typed.data(), typed.size()),
              static_cast<ssize_t>(typed.size()));
    const auto next = reader.next([] { return false; });
    ASSERT_TRUE(next);
    EXPECT_EQ(next->message.may_be_cut, size > 4094) << next->message.text.size();
  }
}

// The other end stays open: only the signal ends the wait.
TEST(MessageReader, AnInterruptEndsTheWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  MessageReader reader(read_end.get(), [](bool) {});
  int looks = 0;
  const auto next = reader.next([&] { return ++looks == 3; });  // it waits meanwhile
  ASSERT_TRUE(next);
  EXPECT_EQ(next->why, MessageReader::Why::Interrupted);
  ASSERT_EQ(::write(write_end.get(), "half", 4), 4);
  looks = 0;
  EXPECT_EQ(reader.next([&] { return ++looks == 3; })->why, MessageReader::Why::Interrupted);
  ASSERT_EQ(::write(write_end.get(), "one\n", 4), 4);
  EXPECT_EQ(reader.next([] { return false; })->message.text, "one") << "the half is dropped";
}

}  // namespace
}  // namespace muster
