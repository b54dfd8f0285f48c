#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/record_window.h"
#include "spec/generation.h"

namespace muster {

/// What a reply adds to its line of OUT.
struct ReplyMembers {
  std::string_view text;
  FinishReason finish_reason = FinishReason::Stop;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::optional<std::uint64_t> seed = {};  // where tokens were drawn
};

/// `"text":"…","finish_reason":"stop","prompt_tokens":12,"completion_tokens":3`, and the seed.
std::string reply_members(const ReplyMembers& reply);

/// Appends the line of a record that is done: `{"id":"a7","index":0,"input":"p.jsonl","line":1,…}`
/// with the members of its reply, or with `"text":null,"reason":"…"` where it has none.
/// Source: docs/formats/replies.md.
void append_reply_line(const WindowRecord& record, std::string& out);

}  // namespace muster
