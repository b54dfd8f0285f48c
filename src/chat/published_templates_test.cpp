// expected.jsonl is made by tools/fixtures/chat_templates.py with transformers 5.17 and jinja2 3.1.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "base/file.h"
#include "chat/chat_template.h"

namespace muster {
namespace {

const std::string kFolder = MUSTER_SOURCE_DIR "/src/chat/testdata/";

// 2026-11-24 12:00 UTC, where the script's clock stands.
constexpr std::int64_t kNow = 1795521600;

ChatValue read_json(const std::string& path) {
  const auto text = read_file(path);
  EXPECT_TRUE(text) << path;
  auto value = ChatValue::parse(*text);
  EXPECT_TRUE(value) << value.error().message;
  return *std::move(value);
}

ChatInput input_of(const ChatValue& conversation) {
  ChatInput input;
  input.messages = *conversation.find("messages");
  if (const auto* tools = conversation.find("tools")) input.tools = *tools;
  const auto* adds = conversation.find("add_generation_prompt");
  input.adds_generation_prompt = adds != nullptr && is_true(*adds);
  if (const auto* variables = conversation.find("variables"))
    input.variables = *variables->as_map();
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.now_unix = kNow;
  return input;
}

/// By the template itself or for what the conversation is, not for want of a filter or a function.
/// In Python a list and None do not have a text's methods, and Jinja's sandbox has no append.
bool is_for_the_conversation(const Error& error) {
  const auto lacks_method = [&](const char* kind) {
    const auto words = std::string("a method of ") + kind + " that is not known: ";
    return error.message.find(words) != std::string::npos;
  };
  return error.kind == ErrorKind::InvalidArgument || lacks_method("list") || lacks_method("None");
}

TEST(PublishedTemplates, GiveTheTextsThatTransformersGives) {
  const auto conversations = read_json(kFolder + "conversations.json");
  std::map<std::string, ChatTemplate> templates;
  std::ifstream rows(kFolder + "expected.jsonl");
  ASSERT_TRUE(rows);
  int count = 0;
  for (std::string line; std::getline(rows, line); ++count) {
    const auto row = *ChatValue::parse(line);
    const auto name = text_of(*row.find("template"));
    const auto conversation = text_of(*row.find("conversation"));
    SCOPED_TRACE(name + ", " + conversation);
    if (templates.count(name) == 0) {
      const auto text = read_file(kFolder + "templates/" + name + ".jinja");
      ASSERT_TRUE(text);
      auto parsed = ChatTemplate::parse(*text);
      ASSERT_TRUE(parsed) << parsed.error().message;
      templates.emplace(name, *std::move(parsed));
    }
    const auto text = templates.at(name).render(input_of(*conversations.find(conversation)));
    if (row.find("refused") != nullptr) {
      ASSERT_FALSE(text) << *text;
      EXPECT_TRUE(is_for_the_conversation(text.error())) << text.error().message;
      continue;
    }
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, text_of(*row.find("text")));
  }
  EXPECT_GT(templates.size(), 20U);
  EXPECT_EQ(count % 8, 0);  // eight conversations each
}

}  // namespace
}  // namespace muster
