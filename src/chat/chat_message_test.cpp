#include "chat/chat_message.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file.h"

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

// A call of a function whose arguments are this JSON, through a published template.
std::string call_through(const std::string& name, const std::string& arguments) {
  const auto text = read_file(MUSTER_SOURCE_DIR "/src/chat/testdata/templates/" + name + ".jinja");
  EXPECT_TRUE(text) << name;
  const auto made = ChatTemplate::parse(*text);
  EXPECT_TRUE(made) << name;
  // Some templates do not take null for its content, and one takes nothing else.
  const std::string content = name == "deepseek-r1-distill" ? "null" : "\"\"";
  const auto messages = parse_chat_messages(
      R"([{"role":"user","content":"Go"},{"role":"assistant","content":)" + content +
      R"(,"tool_calls":[{"id":"call00001","type":"function","function":{"name":"f","arguments":)" +
      arguments + "}}]}]");
  EXPECT_TRUE(messages);
  DecoderText model;
  model.bos_token = "<s>";
  model.eos_token = "</s>";
  const auto out = render_conversation(*made, chat_input_of(*messages, model, 0));
  return out ? *out : "error: " + out.error().message;
}

constexpr const char* kAsText = R"("{\"a\":1}")";
constexpr const char* kAsObject = R"({"a":1})";

// What transformers gives for the object, which published_templates_test compares.
TEST(RenderConversation, ArgumentsThatAreATextAreTheObjectThatATemplateWants) {
  for (const auto* name :
       {"qwen2.5", "llama-3.1", "mistral-nemo", "mistral-small-3.2", "deepseek-v3.1", "glm-4.6"}) {
    const auto object = call_through(name, kAsObject);
    EXPECT_FALSE(object.starts_with("error: ")) << name << ": " << object;
    EXPECT_EQ(call_through(name, kAsText), object) << name;
  }
  EXPECT_NE(call_through("qwen2.5", kAsText).find(R"({"name": "f", "arguments": {"a": 1}})"),
            std::string::npos);
  // Without a quote in it, too.
  EXPECT_EQ(call_through("qwen2.5", R"("{}")"), call_through("qwen2.5", "{}"));
}

TEST(RenderConversation, ArgumentsStayATextForATemplateThatTakesTexts) {
  EXPECT_NE(call_through("deepseek-r1-distill", kAsText).find("```json\n{\"a\":1}\n```"),
            std::string::npos);
  EXPECT_NE(call_through("deepseek-r1-distill", R"("{}")").find("```json\n{}\n```"),
            std::string::npos);
  EXPECT_NE(call_through("qwen3", kAsText).find(R"("arguments": {"a":1}})"), std::string::npos);
  EXPECT_NE(call_through("qwen3", kAsObject).find(R"("arguments": {"a": 1}})"), std::string::npos);
}

TEST(RenderConversation, ATextThatIsNoObjectStaysOne) {
  EXPECT_NE(call_through("qwen2.5", R"("{\"a\":")").find(R"("arguments": "{\"a\":"})"),
            std::string::npos);
  EXPECT_NE(call_through("qwen2.5", R"("[1]")").find(R"("arguments": "[1]"})"), std::string::npos);
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
