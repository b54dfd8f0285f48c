#include "jobs/reply_line.h"

#include <fmt/format.h>

#include "dataset/byte_source.h"
#include "dataset/json_text.h"

namespace muster {

std::string reply_members(const ReplyMembers& reply) {
  std::string members = R"("text":)";
  append_json_string(reply.text, members);
  members += fmt::format(R"(,"finish_reason":"{}","prompt_tokens":{},"completion_tokens":{})",
                         finish_reason_name(reply.finish_reason), reply.prompt_tokens,
                         reply.completion_tokens);
  if (reply.seed) members += fmt::format(R"(,"seed":{})", *reply.seed);
  return members;
}

void append_reply_line(const WindowRecord& record, std::string& out) {
  const auto& entry = record.entry;
  out += '{';
  if (!entry.id.empty()) {
    out += R"("id":)";
    append_json_string(entry.id, out);
    out += ',';
  }
  out += fmt::format(R"("index":{},"input":)", record.number);
  append_json_string(entry.input, out);
  out += fmt::format(R"(,"line":{},)", entry.line);
  if (record.result.reply.empty()) {
    out += R"("text":null,"reason":)";
    append_json_string(entry.reason, out);
  } else {
    out += record.result.reply;
  }
  out += "}\n";
}

}  // namespace muster
