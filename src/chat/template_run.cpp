// Runs the statements of a tree with scopes that are linked upwards: a name is looked up outwards
// and set in the innermost scope, which is why an assignment in a loop is gone after it. Break and
// continue travel as results, not as exceptions. Expressions are in template_values.cpp. Source:
// Jinja 3.1, compiler.py and runtime.py.

#include "chat/template_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat/filters.h"

namespace muster {
namespace {

using Statement = TemplateStatement;
using Value = Result<ChatValue>;

// Of a name that is compared, in bytes: so that 16 of them are a step.
constexpr std::size_t kFieldCost = 4;

class Macro final : public ChatFunction {
 public:
  Macro(TemplateRun& run, const Statement& macro, const std::shared_ptr<ChatScope>& scope)
      : run_(run), macro_(macro), scope_(scope) {}

  Value call(const ChatArguments& arguments, ChatBudget& /*budget*/) const override {
    // A weak pointer, as the scope holds the macro itself.
    const auto scope = scope_.lock();
    if (scope == nullptr)
      return invalid_error(fmt::format("macro {} outlived its block", macro_.text));
    return run_.call_macro(macro_, scope, arguments);
  }

 private:
  TemplateRun& run_;
  const Statement& macro_;
  const std::weak_ptr<ChatScope> scope_;
};

/// The variable `loop` of a for. Source: Jinja 3.1, runtime.py, LoopContext.
ChatValue loop_of(const ChatValue::List& items, std::size_t index) {
  const auto count = static_cast<std::int64_t>(items.size());
  const auto place = static_cast<std::int64_t>(index);
  const auto neighbour = [&](std::int64_t at, const char* name) {
    if (at < 0 || at >= count) return ChatValue(ChatValue::Undefined{name});
    return items[static_cast<std::size_t>(at)];
  };
  auto loop = std::make_shared<ChatValue::Namespace>();
  loop->is_loop = true;
  loop->fields = {{"index", place + 1},
                  {"index0", place},
                  {"revindex", count - place},
                  {"revindex0", count - place - 1},
                  {"first", place == 0},
                  {"last", place + 1 == count},
                  {"length", count},
                  {"depth", std::int64_t{1}},
                  {"depth0", std::int64_t{0}},
                  {"previtem", neighbour(place - 1, "previtem")},
                  {"nextitem", neighbour(place + 1, "nextitem")}};
  return ChatValue(std::move(loop));
}

}  // namespace

ChatValue* ChatScope::find_here(std::string_view name) {
  for (auto& [key, value] : names) {
    if (key == name) return &value;
  }
  return nullptr;
}

void ChatScope::set(std::string_view name, ChatValue value) {
  if (auto* found = find_here(name)) {
    *found = std::move(value);
  } else {
    names.emplace_back(name, std::move(value));
  }
}

Error at_template_line(const Error& error, std::uint32_t line) {
  constexpr std::string_view kStart = "chat template, line ";
  if (error.message.starts_with(kStart)) return error;
  return Error{error.kind, fmt::format("{}{}: {}", kStart, line, error.message)};
}

Result<TemplateRun::Flow> TemplateRun::run(const TemplateBlock& block, const Scope& scope,
                                           std::string& out) {
  const ChatBudget::Level level(budget_);
  MUSTER_TRY(budget_.check_depth());
  for (const auto& statement : block) {
    MUSTER_TRY(budget_.spend());
    auto flow = run_statement(*statement, scope, out);
    if (!flow) return at_template_line(flow.error(), statement->line);
    if (*flow != Flow::Next) return flow;
  }
  return Flow::Next;
}

Result<TemplateRun::Flow> TemplateRun::run_statement(const Statement& statement, const Scope& scope,
                                                     std::string& out) {
  switch (statement.kind) {
    case Statement::Kind::Data:
      MUSTER_TRY(append(statement.text, out));
      return Flow::Next;
    case Statement::Kind::Output: {
      const auto value = MUSTER_TRY(value_of(*statement.expression, scope));
      if (const auto* text = value.as_text()) {
        MUSTER_TRY(append(*text, out));
      } else {
        const auto shown = MUSTER_TRY(paid_text_of(value, budget_));
        MUSTER_TRY(append(shown, out));
      }
      return Flow::Next;
    }
    case Statement::Kind::If:
      return run_if(statement, scope, out);
    case Statement::Kind::For:
      return run_for(statement, scope, out);
    case Statement::Kind::Set: {
      auto value = MUSTER_TRY(value_of(*statement.expression, scope));
      MUSTER_TRY(assign(statement, scope, std::move(value)));
      return Flow::Next;
    }
    case Statement::Kind::SetBlock:
    case Statement::Kind::Filter:
      return run_block_statement(statement, scope, out);
    case Statement::Kind::Macro: {
      std::shared_ptr<const ChatFunction> macro = std::make_shared<Macro>(*this, statement, scope);
      scope->set(statement.text, ChatValue(std::move(macro)));
      return Flow::Next;
    }
    case Statement::Kind::Generation: {
      // transformers runs it as a call with a block: what it sets is gone behind it.
      auto inner = std::make_shared<ChatScope>();
      inner->parent = scope;
      return run(statement.blocks.front(), inner, out);
    }
    case Statement::Kind::Break:
      return Flow::Break;
    case Statement::Kind::Continue:
      return Flow::Continue;
  }
  return Flow::Next;
}

Result<TemplateRun::Flow> TemplateRun::run_if(const Statement& statement, const Scope& scope,
                                              std::string& out) {
  for (std::size_t i = 0; i < statement.tests.size(); ++i) {
    const auto test = MUSTER_TRY(value_of(*statement.tests[i], scope));
    if (is_true(test)) return run(statement.blocks[i], scope, out);
  }
  if (statement.blocks.size() > statement.tests.size()) {
    return run(statement.blocks.back(), scope, out);
  }
  return Flow::Next;
}

/// What the loop goes over: with a condition, only the items that meet it.
Result<ChatValue::List> TemplateRun::loop_items(const Statement& statement, const ChatValue& whole,
                                                const Scope& scope) {
  auto items = MUSTER_TRY(elements_of(whole, budget_));
  if (statement.condition == nullptr) return items;
  ChatValue::List kept;
  for (auto& item : items) {
    auto inner = std::make_shared<ChatScope>();
    inner->parent = scope;
    MUSTER_TRY(unpack(statement.names, inner, item));
    const auto condition = MUSTER_TRY(value_of(*statement.condition, inner));
    if (is_true(condition)) kept.push_back(std::move(item));
  }
  return kept;
}

// Each pass has a scope of its own. The items are a copy, so the body cannot change what the loop
// goes over. The else is for a loop without a pass that came to the end of its body: Jinja notes
// that one has where the body ends. Source: Jinja 3.1, compiler.py, visit_For.
Result<TemplateRun::Flow> TemplateRun::run_for(const Statement& statement, const Scope& scope,
                                               std::string& out) {
  const auto whole = MUSTER_TRY(value_of(*statement.expression, scope));
  const auto items = MUSTER_TRY(loop_items(statement, whole, scope));
  bool was_through = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    MUSTER_TRY(budget_.spend());
    auto inner = std::make_shared<ChatScope>();
    inner->parent = scope;
    MUSTER_TRY(unpack(statement.names, inner, items[i]));
    inner->set("loop", loop_of(items, i));
    const auto flow = MUSTER_TRY(run(statement.blocks.front(), inner, out));
    if (flow == Flow::Break) {
      whole.leave_walk();
      break;
    }
    was_through = was_through || flow == Flow::Next;
  }
  if (!was_through && statement.blocks.size() > 1) {
    auto inner = std::make_shared<ChatScope>();
    inner->parent = scope;
    return run(statement.blocks.back(), inner, out);
  }
  return Flow::Next;
}

Status TemplateRun::unpack(const std::vector<std::string>& names, const Scope& scope,
                           const ChatValue& value) {
  if (names.size() == 1) {
    scope->set(names.front(), value);
    return Done{};
  }
  const auto items = MUSTER_TRY(elements_of(value, budget_));
  if (items.size() != names.size()) {
    return invalid_error(fmt::format("{} values for {} names", items.size(), names.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) scope->set(names[i], items[i]);
  return Done{};
}

// Only a namespace's field can be assigned to; the variable `loop` is a namespace but may not be
// changed.
Status TemplateRun::assign(const Statement& statement, const Scope& scope, ChatValue value) {
  const auto& target = statement.names.front();
  const auto dot = target.find('.');
  if (statement.names.size() > 1 || dot == std::string::npos) {
    MUSTER_TRY(budget_.spend(scope->names.size()));
    return unpack(statement.names, scope, value);
  }
  const auto holder = MUSTER_TRY(look_up(std::string_view(target).substr(0, dot), scope));
  const auto* fields = holder.as_namespace();
  if (fields == nullptr || (*fields)->is_loop) {
    return invalid_error(fmt::format("{} is no namespace", target.substr(0, dot)));
  }
  if (value.as_namespace() != nullptr) {
    return Error{ErrorKind::Unsupported, "a namespace within a namespace is not known"};
  }
  const auto name = target.substr(dot + 1);
  MUSTER_TRY(pay_for_look_up((*fields)->fields, name, budget_));
  for (auto& [key, field] : (*fields)->fields) {
    if (key != name) continue;
    field = std::move(value);
    return Done{};
  }
  (*fields)->fields.emplace_back(name, std::move(value));
  return Done{};
}

// The output has a limit of its own beside the budget, since it is what goes on to the tokenizer.
Status TemplateRun::append(std::string_view text, std::string& out) {
  MUSTER_TRY(budget_.take(text.size()));
  if (out.size() + text.size() > output_bytes_max_) {
    return Error{
        ErrorKind::ResourceExhausted,
        fmt::format("the text of the conversation is longer than {} bytes", output_bytes_max_)};
  }
  out.append(text);
  return Done{};
}

// The text is bound to a hidden name, by which the block's filters find it.
Result<TemplateRun::BlockText> TemplateRun::block_text(const Statement& statement,
                                                       const Scope& scope) {
  auto inner = std::make_shared<ChatScope>();
  inner->parent = scope;
  std::string text;
  const auto flow = MUSTER_TRY(run(statement.blocks.front(), inner, text));
  if (flow != Flow::Next) return BlockText{.flow = flow};
  inner->set(kBlockText, ChatValue(std::move(text)));
  auto made = MUSTER_TRY(value_of(*statement.expression, inner));
  return BlockText{.text = std::move(made)};
}

// A block that a break or continue leaves sets and prints nothing.
Result<TemplateRun::Flow> TemplateRun::run_block_statement(const Statement& statement,
                                                           const Scope& scope, std::string& out) {
  auto block = MUSTER_TRY(block_text(statement, scope));
  if (block.flow != Flow::Next) return block.flow;
  if (statement.kind == Statement::Kind::SetBlock) {
    MUSTER_TRY(assign(statement, scope, std::move(block.text)));
    return Flow::Next;
  }
  const auto text = MUSTER_TRY(paid_text_of(block.text, budget_));
  MUSTER_TRY(append(text, out));
  return Flow::Next;
}

// The scope is the one that the macro was defined in, not the caller's. A default may use the
// arguments before it, so it is evaluated in the new scope.
Result<ChatValue> TemplateRun::call_macro(const Statement& macro, const Scope& scope,
                                          const ChatArguments& arguments) {
  const auto& names = macro.names;
  if (arguments.values.size() > names.size()) {
    return invalid_error(fmt::format("macro {} takes {} arguments, not {}", macro.text,
                                     names.size(), arguments.values.size()));
  }
  for (const auto& [name, value] : arguments.named) {
    MUSTER_TRY(budget_.spend(names.size() * kFieldCost));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return invalid_error(fmt::format("macro {} has no argument {}", macro.text, name));
    }
  }
  auto inner = std::make_shared<ChatScope>();
  inner->parent = scope;
  const auto first_default = names.size() - macro.defaults.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto* given = arguments.find(i, names[i])) {
      inner->set(names[i], *given);
    } else if (i >= first_default) {
      inner->set(names[i], MUSTER_TRY(value_of(*macro.defaults[i - first_default], inner)));
    } else {
      inner->set(names[i], ChatValue(ChatValue::Undefined{names[i]}));
    }
  }
  std::string text;
  MUSTER_TRY(run(macro.blocks.front(), inner, text));
  return ChatValue(std::move(text));
}

}  // namespace muster
