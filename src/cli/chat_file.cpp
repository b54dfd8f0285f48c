// {"messages": [{"role": "user", "content": "…"}, …]}: what a request to /v1/chat/completions has,
// so that a conversation can be sent to a server as it is.

#include "cli/chat_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kBytesMost = 16ULL << 20;  // no context is so long
constexpr int kDepthMost = 32;                     // messages are at the third
constexpr std::uint32_t kOwnMode = 0600;           // what is said to a model may be private

Error no_chat(const std::filesystem::path& path, std::string_view why) {
  return {ErrorKind::Corrupt, fmt::format("{}: this is no conversation: {}", path.string(), why)};
}

const std::string* text_of(const Json& message, const char* name) {
  if (!message.is_object()) return nullptr;
  const auto found = message.find(name);
  return found == message.end() ? nullptr : found->get_ptr<const std::string*>();
}

// What is not of a conversation would be lost: a request's "temperature" or "tools", the "name" of
// a message.
bool is_chat_alone(const std::filesystem::path& path) {
  if (!load_chat(path)) return false;
  const auto text = read_file(path, kBytesMost);
  if (!text) return false;
  const auto json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.size() != 1 || !json.contains("messages")) return false;
  const auto& messages = json["messages"];
  return std::all_of(messages.begin(), messages.end(), [](const Json& message) {
    return message.size() == 2;  // role and content, as `load_chat` has seen
  });
}

}  // namespace

Status save_chat(const std::filesystem::path& path, const ChatFile& chat) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  const bool is_there = std::filesystem::exists(status);
  // A pipe or a terminal would be waited for.
  if (is_there && (!std::filesystem::is_regular_file(status) || !is_chat_alone(path))) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: this file holds more than a conversation or none, and it would "
                             "be overwritten: name another file",
                             path.string())};
  }
  auto messages = Json::array();
  if (chat.system) messages.push_back({{"role", "system"}, {"content", *chat.system}});
  for (const auto& message : chat.messages) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  const auto text =
      Json{{"messages", std::move(messages)}}.dump(1, ' ', false, Json::error_handler_t::replace);
  const auto mode = static_cast<std::uint32_t>(status.permissions() & std::filesystem::perms::all);
  return write_file_atomically(path, text + "\n", {.mode = is_there ? mode : kOwnMode});
}

Result<ChatFile> load_chat(const std::filesystem::path& path) {
  const auto text = MUSTER_TRY(read_file(path, kBytesMost));
  // One array in another for each byte of a file would take gigabytes.
  bool is_deep = false;
  const auto json = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        is_deep |= depth > kDepthMost;
        return !is_deep;
      },
      /*allow_exceptions=*/false);
  if (is_deep) return no_chat(path, "values are nested too deeply");
  if (json.is_discarded()) return no_chat(path, "it is not JSON");
  if (!json.is_object() || !json.contains("messages") || !json["messages"].is_array()) {
    return no_chat(path, "it has no list of messages");
  }
  ChatFile chat;
  const char* turn = "user";
  for (const auto& message : json["messages"]) {
    const auto* role = text_of(message, "role");
    const auto* content = text_of(message, "content");
    if (role == nullptr || content == nullptr) return no_chat(path, "a message lacks its text");
    if (*role == "system" && !chat.system && chat.messages.empty()) {
      chat.system = *content;
      continue;
    }
    if (*role != turn) return no_chat(path, "user and assistant do not take turns");
    turn = *role == "user" ? "assistant" : "user";
    chat.messages.push_back({*role, *content});
  }
  if (chat.messages.size() % 2 != 0) return no_chat(path, "its last question has no reply");
  return chat;
}

}  // namespace muster
