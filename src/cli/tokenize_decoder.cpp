// Chats and ids of decoders. A conversation goes through the model's own template, and the text
// that comes out is shown beside its ids, because a wrong template shows in the text. Ids are
// checked against the vocabulary before they are decoded.

#include "cli/tokenize_decoder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "dataset/json_text.h"

namespace muster {
namespace {

constexpr std::uint64_t kInputBytesMax = std::uint64_t{1} << 30;
constexpr std::size_t kIdSizeMax = 10;  // digits of 2^32 - 1

Result<std::string> read_input(const std::string& name) {
  if (name == "-") return read_all(STDIN_FILENO, kInputBytesMax, "standard input");
  return read_file(name, kInputBytesMax);
}

/// What the file says about the rendering; everything else in it is a variable.
ChatInput input_of(const ChatValue& conversation, const DecoderText& text) {
  ChatInput input;
  input.bos_token = text.bos_token;
  input.eos_token = text.eos_token;
  input.now_unix = std::time(nullptr);
  if (conversation.as_map() == nullptr) {
    input.messages = conversation;
    return input;
  }
  for (const auto& [key, value] : *conversation.as_map()) {
    if (key == "messages") {
      input.messages = value;
    } else if (key == "tools") {
      input.tools = value;
    } else if (key == "documents") {
      input.documents = value;
    } else if (key == "add_generation_prompt") {
      input.adds_generation_prompt = is_true(value);
    } else {
      input.variables.emplace_back(key, value);
    }
  }
  return input;
}

/// The ids of a line; nullopt for a null.
Result<std::optional<std::vector<TokenId>>> ids_of(const ChatValue& line, std::uint32_t end) {
  const auto* field = line.find("ids");
  const auto& value = field == nullptr ? line : *field;
  if (value.is_none()) return std::optional<std::vector<TokenId>>();
  // One message for all faults of a line: it says what a line must be.
  const Error wrong{ErrorKind::InvalidArgument,
                    fmt::format("not a list of ids below {}, nor an object with one as ids", end)};
  if (value.as_list() == nullptr) return wrong;
  std::vector<TokenId> ids;
  for (const auto& each : *value.as_list()) {
    const auto* id = each.as_integer();
    if (id == nullptr || *id < 0 || *id >= std::int64_t{end}) return wrong;
    ids.push_back(static_cast<TokenId>(*id));
  }
  return std::optional(std::move(ids));
}

Result<std::string> decoded_line(const Tokenizer& tokenizer, std::string_view line,
                                 bool keeps_special) {
  const auto value = MUSTER_TRY(ChatValue::parse(line));
  const auto ids = MUSTER_TRY(ids_of(value, tokenizer.vocab_size()));
  if (!ids) return std::string("{\"text\":null}\n");
  std::string out = "{\"text\":";
  append_json_string(tokenizer.decode(*ids, !keeps_special), out);
  return out + "}\n";
}

}  // namespace

void append_id_list(const std::vector<TokenId>& ids, std::string& line) {
  char digits[kIdSizeMax];
  line += '[';
  for (const auto id : ids) {
    if (line.back() != '[') line += ',';
    line.append(digits, std::to_chars(digits, digits + kIdSizeMax, id).ptr);
  }
  line += ']';
}

Result<int> tokenize_chat(const DecoderText& text, const CommandContext& context) {
  const auto file = context.arguments.value("--chat").value_or("");
  const auto content = MUSTER_TRY(read_input(file));
  const auto within = [&](const Error& error) {
    return Error{error.kind, fmt::format("{}: {}", file, error.message)};
  };
  const auto conversation = ChatValue::parse(content);
  if (!conversation) return within(conversation.error());
  const auto input = input_of(*conversation, text);
  if (input.messages.as_list() == nullptr) {
    return within({ErrorKind::InvalidArgument, "messages is not a list"});
  }
  // A model may have a template of its own for conversations with tools.
  const auto chat =
      MUSTER_TRY(text.find_template(context.arguments.value("--template"), is_true(input.tools)));
  const auto rendered = MUSTER_TRY(chat.render(input));
  std::string line = "{\"text\":";
  append_json_string(rendered, line);
  line += ",\"ids\":";
  append_id_list(encode_rendered(*text.tokenizer, rendered, *text.tokenizer->make_scratch()), line);
  line += ",\"stop_ids\":";
  append_id_list(text.stop_ids, line);
  MUSTER_TRY(context.output.append(line + "}\n"));
  return 0;
}

Result<int> decode_ids(const Tokenizer& tokenizer, const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  const bool keeps_special = context.arguments.has("--keep-special");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto content = MUSTER_TRY(read_input(words[i]));
    std::size_t number = 0;
    for (std::string_view left = content; !left.empty();) {
      const auto end = std::min(left.find('\n'), left.size());
      const auto line = left.substr(0, end);
      left.remove_prefix(std::min(left.size(), end + 1));
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const auto out = decoded_line(tokenizer, line, keeps_special);
      if (!out) {
        return Error{out.error().kind,
                     fmt::format("{}:{}: {}", words[i], number, out.error().message)};
      }
      MUSTER_TRY(context.output.append(*out));
    }
  }
  return 0;
}

}  // namespace muster
