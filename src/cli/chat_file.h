#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/chat_message.h"

namespace muster {

/// A conversation as /save keeps it: OpenAI's list of messages, the system's text first.
struct ChatFile {
  std::optional<std::string> system;
  std::vector<ChatMessage> messages = {};
};

/// Writes it, whole or not at all. A file that is there is replaced only if it is one and nothing
/// else, and keeps who may read it; a new one is the user's alone.
///
/// Errors: InvalidArgument for another file; those of writing.
Status save_chat(const std::filesystem::path& path, const ChatFile& chat);

/// Errors: NotFound, Corrupt (not JSON, or no such list of messages), those of reading.
Result<ChatFile> load_chat(const std::filesystem::path& path);

}  // namespace muster
