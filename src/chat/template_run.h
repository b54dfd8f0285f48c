#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/budget.h"
#include "chat/function.h"
#include "chat/template_nodes.h"

namespace muster {

/// The names that are known at a place of a template, and those of the places around it.
struct ChatScope {
  std::shared_ptr<ChatScope> parent;
  ChatValue::Map names;

  /// nullptr for a name that is not set here.
  ChatValue* find_here(std::string_view name);
  void set(std::string_view name, ChatValue value);
};

/// The error with the line before its message, unless that has one.
Error at_template_line(const Error& error, std::uint32_t line);

/// Runs a template's statements, and evaluates their expressions (template_values.cpp).
///
/// Owner: one rendering; not thread-safe. Errors: those of `ChatTemplate::render`.
class TemplateRun {
 public:
  TemplateRun(ChatBudget& budget, std::size_t output_bytes_max)
      : budget_(budget), output_bytes_max_(output_bytes_max) {}

  /// What a statement says about those behind it.
  enum class Flow : std::uint8_t { Next, Break, Continue };

  /// Appends the text of a block to `out`.
  Result<Flow> run(const TemplateBlock& block, const std::shared_ptr<ChatScope>& scope,
                   std::string& out);

  /// The text of a macro that is called with these arguments.
  Result<ChatValue> call_macro(const TemplateStatement& macro,
                               const std::shared_ptr<ChatScope>& scope,
                               const ChatArguments& arguments);

 private:
  using Scope = std::shared_ptr<ChatScope>;

  Result<Flow> run_statement(const TemplateStatement& statement, const Scope& scope,
                             std::string& out);
  Result<Flow> run_if(const TemplateStatement& statement, const Scope& scope, std::string& out);
  Result<Flow> run_for(const TemplateStatement& statement, const Scope& scope, std::string& out);
  Result<ChatValue::List> loop_items(const TemplateStatement& statement, const ChatValue& whole,
                                     const Scope& scope);
  Status assign(const TemplateStatement& statement, const Scope& scope, ChatValue value);
  Status unpack(const std::vector<std::string>& names, const Scope& scope, const ChatValue& value);
  Status append(std::string_view text, std::string& out);
  /// The text of a statement's block, through its filters if it has any; none where a break or
  /// continue of the loop around it ends the block.
  struct BlockText {
    Flow flow = Flow::Next;
    ChatValue text = {};
  };
  Result<BlockText> block_text(const TemplateStatement& statement, const Scope& scope);
  Result<Flow> run_block_statement(const TemplateStatement& statement, const Scope& scope,
                                   std::string& out);

  Result<ChatValue> value_of(const TemplateExpression& expression, const Scope& scope);
  Result<ChatValue> value_by_kind(const TemplateExpression& expression, const Scope& scope);
  Result<ChatValue> choice_of(const TemplateExpression& expression, const Scope& scope);
  Result<ChatValue> look_up(std::string_view name, const Scope& scope);
  Result<ChatValue> attribute_of(const TemplateExpression& expression, const Scope& scope);
  Result<ChatValue> slice_of(const TemplateExpression& expression, const Scope& scope);
  Result<ChatValue> call_of(const TemplateExpression& expression, const Scope& scope);
  Result<ChatValue> map_of(const TemplateExpression& expression, const Scope& scope);
  Result<ChatValue> comparison_of(const TemplateExpression& expression, const Scope& scope);
  Result<ChatArguments> arguments_of(const TemplateArguments& arguments, const Scope& scope);

  ChatBudget& budget_;
  const std::size_t output_bytes_max_;
};

}  // namespace muster
