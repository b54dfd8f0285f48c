// Conversations as values of a template. What a template may read is passed on as it is; contents
// in parts alone are joined, because templates of text models take a content for a text.

#include "chat/chat_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace muster {
namespace {

Error wrong(std::size_t index, std::string_view what) {
  return {ErrorKind::InvalidArgument, fmt::format("messages[{}] {}", index, what)};
}

// The texts of a content's parts behind each other; nullopt where one is no text.
std::optional<std::string> joined_parts(const ChatValue::List& parts) {
  std::string joined;
  for (const auto& part : parts) {
    const auto* type = part.find("type");
    const auto* text = part.find("text");
    const bool is_text = type != nullptr && type->as_text() != nullptr &&
                         *type->as_text() == "text" && text != nullptr &&
                         text->as_text() != nullptr;
    if (!is_text) return std::nullopt;
    joined += *text->as_text();
  }
  return joined;
}

Result<ChatValue> read_message(const ChatValue& value, std::size_t index) {
  const auto* map = value.as_map();
  if (map == nullptr) return wrong(index, "is no object");
  const auto* role = value.find("role");
  if (role == nullptr) return wrong(index, "has no role");
  if (role->as_text() == nullptr || role->as_text()->empty()) {
    return wrong(index, "has a role that is no text");
  }
  const auto* content = value.find("content");
  if (content == nullptr || content->is_none()) {
    if (value.find("tool_calls") != nullptr) return value;
    return wrong(index, "has no content");
  }
  if (content->as_text() != nullptr) return value;
  if (content->as_list() == nullptr) return wrong(index, "has a content that is no text");
  auto joined = joined_parts(*content->as_list());
  if (!joined) return wrong(index, "has a part that is no text");
  auto message = *map;
  for (auto& [key, part] : message) {
    if (key == "content") part = ChatValue(std::move(*joined));
  }
  return ChatValue(std::move(message));
}

/// The value with that of one of its keys changed; itself where it has no such key.
template <typename Change>
ChatValue with_changed(const ChatValue& value, std::string_view key, const Change& change) {
  if (value.find(key) == nullptr) return value;
  auto map = *value.as_map();
  for (auto& [name, each] : map) {
    if (name == key) each = change(each);
  }
  return ChatValue(std::move(map));
}

/// The list with each item changed; another value as it is.
template <typename Change>
ChatValue with_each_changed(const ChatValue& value, const Change& change) {
  if (value.as_list() == nullptr) return value;
  auto list = *value.as_list();
  for (auto& item : list) item = change(item);
  return ChatValue(std::move(list));
}

/// Messages with the arguments of their tool calls changed, where they are a text.
template <typename Change>
ChatValue with_arguments(const ChatValue& messages, const Change& change) {
  const auto of_call = [&](const ChatValue& call) {
    return with_changed(call, "function", [&](const ChatValue& function) {
      return with_changed(function, "arguments", [&](const ChatValue& arguments) {
        return arguments.as_text() == nullptr ? arguments : change(arguments);
      });
    });
  };
  return with_each_changed(messages, [&](const ChatValue& message) {
    return with_changed(message, "tool_calls",
                        [&](const ChatValue& calls) { return with_each_changed(calls, of_call); });
  });
}

// Whether the template writes such a text as it is. A text takes the arguments' place that stands
// nowhere else in the conversation, and that no quoting leaves unchanged. Source: caps of minja,
// the templates of llama.cpp, which tries its templates with a word that it looks for.
bool takes_texts(const ChatTemplate& chat_template, ChatInput input) {
  constexpr std::string_view kProbe = R"({"which form":"is it"})";
  input.messages =
      with_arguments(input.messages, [&](const ChatValue&) { return ChatValue(kProbe); });
  const auto rendered = chat_template.render(input);
  return rendered && rendered->find(kProbe) != std::string::npos;
}

}  // namespace

Result<std::string> render_conversation(const ChatTemplate& chat_template, const ChatInput& input) {
  bool has_texts = false;
  auto objects = input;
  objects.messages = with_arguments(input.messages, [&](const ChatValue& text) {
    const auto object = ChatValue::parse(*text.as_text());
    if (!object || object->as_map() == nullptr) return text;
    has_texts = true;
    return *object;
  });
  if (!has_texts || takes_texts(chat_template, input)) return chat_template.render(input);
  auto rendered = chat_template.render(objects);
  if (rendered) return rendered;
  return chat_template.render(input);  // it takes neither, or calls of one kind alone
}

ChatValue chat_value_of(const std::vector<ChatMessage>& messages) {
  ChatValue::List list;
  for (const auto& message : messages) {
    list.push_back(ChatValue(ChatValue::Map{{"role", ChatValue(message.role)},
                                            {"content", ChatValue(message.content)}}));
  }
  return ChatValue(std::move(list));
}

Result<ChatValue> parse_chat_messages(std::string_view json) {
  const auto value = MUSTER_TRY(ChatValue::parse(json));
  const auto* messages = value.as_list();
  if (messages == nullptr || messages->empty()) {
    return Error{ErrorKind::InvalidArgument, "messages must be a list of at least one"};
  }
  ChatValue::List list;
  for (std::size_t i = 0; i < messages->size(); ++i) {
    list.push_back(MUSTER_TRY(read_message((*messages)[i], i)));
  }
  return ChatValue(std::move(list));
}

ChatInput chat_input_of(ChatValue messages, const DecoderText& text, std::int64_t now_unix,
                        TemplateVariables variables) {
  ChatInput input;
  input.variables = std::move(variables);
  input.messages = std::move(messages);
  input.bos_token = text.bos_token;
  input.eos_token = text.eos_token;
  input.now_unix = now_unix;
  return input;
}

}  // namespace muster
