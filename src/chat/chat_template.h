#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/value.h"

namespace muster {

/// What a template is rendered with.
struct ChatInput {
  /// A list of maps with `role` and `content`, and whatever else the template may read
  /// (`tool_calls`, `name`).
  ChatValue messages;
  ChatValue tools;                     // a list of JSON schemas; none: no tools
  ChatValue documents;                 // none: no documents
  bool adds_generation_prompt = true;  // ends where the reply begins
  std::string bos_token;
  std::string eos_token;
  /// More variables by name (`enable_thinking`); one of the names above goes before them.
  ChatValue::Map variables;
  std::int64_t now_unix = 0;  // seconds: what strftime_now shows, as UTC
};

/// Bounds of one rendering. A template of a file is somebody else's program; these are far above
/// what any published one needs.
struct ChatLimits {
  std::size_t output_bytes_max = std::size_t{16} << 20;
  std::uint64_t steps_max = 10'000'000;  // nodes evaluated, and each 64 bytes or elements
  /// Of all texts and lists that are made; of a value also what printing it would take.
  std::uint64_t bytes_max = std::uint64_t{256} << 20;
  std::size_t depth_max = 400;  // of calls, blocks and expressions in each other
};

/// A chat template: the subset of Jinja that published models use.
///
/// Statements: for (with else, a condition, unpacking, loop variables), if, set (also of a
/// namespace, and as a block), macro, call-free expressions, generation, comments, raw, and white
/// space control. Expressions: Python's literals, operators, slices, conditionals, calls with
/// names; the filters, tests, functions and methods that README.md lists. Everything else is
/// refused by name and line when the template is read, or, where only a value shows it, when it is
/// rendered.
///
/// Threads: immutable. Rendering is a pure function of its input.
/// Source: Jinja 3.1 documentation and compiler; transformers 5.17, utils/chat_template_utils.py,
/// which sets trim_blocks, lstrip_blocks, tojson, raise_exception, strftime_now and loop controls.
class ChatTemplate {
 public:
  /// Errors: Unsupported (a construct outside the subset, with its line), InvalidArgument (broken
  /// syntax, with its line), ResourceExhausted (longer than 1 MB, nested deeper than 64).
  static Result<ChatTemplate> parse(std::string_view text);

  /// The text of a conversation, in UTF-8.
  ///
  /// Errors: InvalidArgument (the template's own raise_exception, with its words; an operation that
  /// Python refuses, with the line; a text that is not UTF-8), Unsupported (a method or filter of a
  /// kind of value outside the subset), ResourceExhausted (a limit, by name).
  Result<std::string> render(const ChatInput& input, const ChatLimits& limits = {}) const;

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<const Program> program);
  std::unique_ptr<const Program> program_;
};

}  // namespace muster
