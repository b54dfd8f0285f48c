#include "chat/chat_message.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

std::string rendered(std::string_view json) {
  const auto messages = parse_chat_messages(json);
  if (!messages) return messages.error().message;
  DecoderText text;
  text.bos_token = "<s>";
  const auto made = ChatTemplate::parse(
      "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}"
      "{% if m.name %} ({{ m.name }}){% endif %}; {% endfor %}{{ strftime_now('%Y-%m-%d') }}");
  EXPECT_TRUE(made);
  // 20,000 days after 1970-01-01.
  const auto out = made->render(chat_input_of(*messages, text, 20'000LL * 86'400));
  return out ? *out : out.error().message;
}

TEST(ParseChatMessages, PassesOnWhatATemplateMayRead) {
  EXPECT_EQ(rendered(R"([{"role":"system","content":"Be brief"},
                         {"role":"user","name":"Ada","content":"Hi"}])"),
            "<s>system: Be brief; user: Hi (Ada); 2024-10-04");
}

TEST(ParseChatMessages, JoinsPartsThatAreTexts) {
  EXPECT_EQ(rendered(R"([{"role":"user","content":[{"type":"text","text":"a"},
                                                   {"type":"text","text":"b"}]}])"),
            "<s>user: ab; 2024-10-04");
  EXPECT_EQ(rendered(R"([{"role":"user","content":[{"type":"image_url","image_url":"x"}]}])"),
            "messages[0] has a part that is no text");
}

TEST(ParseChatMessages, NamesTheMessageThatIsNone) {
  EXPECT_EQ(rendered("{}"), "messages must be a list of at least one");
  EXPECT_EQ(rendered("[]"), "messages must be a list of at least one");
  EXPECT_EQ(rendered(R"([{"role":"user","content":"a"}, 7])"), "messages[1] is no object");
  EXPECT_EQ(rendered(R"([{"content":"a"}])"), "messages[0] has no role");
  EXPECT_EQ(rendered(R"([{"role":7,"content":"a"}])"), "messages[0] has a role that is no text");
  EXPECT_EQ(rendered(R"([{"role":"user"}])"), "messages[0] has no content");
  EXPECT_EQ(rendered(R"([{"role":"user","content":7}])"),
            "messages[0] has a content that is no text");
  EXPECT_EQ(rendered(R"([{"role":"assistant","content":null,"tool_calls":[]}])").find("messages"),
            std::string::npos)
      << "its content are the calls";
}

}  // namespace
}  // namespace muster
