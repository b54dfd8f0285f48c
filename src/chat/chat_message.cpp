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

}  // namespace

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

ChatInput chat_input_of(ChatValue messages, const DecoderText& text, std::int64_t now_unix) {
  ChatInput input;
  input.messages = std::move(messages);
  input.bos_token = text.bos_token;
  input.eos_token = text.eos_token;
  input.now_unix = now_unix;
  return input;
}

}  // namespace muster
