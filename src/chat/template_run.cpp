// Walks the tree with scopes that are linked upwards: a name is looked up outwards and set in the
// innermost scope, which is why an assignment in a loop is gone after it. Break and continue travel
// as results, not as exceptions. Steps, depth and bytes are charged as they are used. An error gets
// the line of the innermost statement or expression that failed, once. Source: Jinja 3.1,
// compiler.py and runtime.py.

#include "chat/template_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "chat/filters.h"
#include "chat/text_work.h"

// A tree walk. Every node costs a step and every level counts, so that a template that loops or
// calls itself without an end is stopped; a text that is made costs its bytes.

namespace muster {
namespace {

using Expression = TemplateExpression;
using Statement = TemplateStatement;
using Value = Result<ChatValue>;

// Of a name that is compared, in bytes: so that 16 of them are a step.
constexpr std::size_t kFieldCost = 4;

/// Puts the line before a message that has none yet.
Error at_line(const Error& error, std::uint32_t line) {
  constexpr std::string_view kStart = "chat template, line ";
  if (error.message.starts_with(kStart)) return error;
  return Error{error.kind, fmt::format("{}{}: {}", kStart, line, error.message)};
}

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

const ChatValue* field_of(const ChatValue::Namespace& fields, std::string_view name) {
  for (const auto& [key, value] : fields.fields) {
    if (key == name) return &value;
  }
  return nullptr;
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

// --- statements ---

Result<TemplateRun::Flow> TemplateRun::run(const TemplateBlock& block, const Scope& scope,
                                           std::string& out) {
  const ChatBudget::Level level(budget_);
  MUSTER_TRY(budget_.check_depth());
  for (const auto& statement : block) {
    MUSTER_TRY(budget_.spend());
    auto flow = run_statement(*statement, scope, out);
    if (!flow) return at_line(flow.error(), statement->line);
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

// --- expressions ---

Result<ChatValue> TemplateRun::value_of(const Expression& expression, const Scope& scope) {
  const ChatBudget::Level level(budget_);
  MUSTER_TRY(budget_.check_depth());
  MUSTER_TRY(budget_.spend());
  auto value = value_by_kind(expression, scope);
  if (!value) return at_line(value.error(), expression.line);
  const auto checked = budget_.check(*value);
  if (!checked) return at_line(checked.error(), expression.line);
  return value;
}

Result<ChatValue> TemplateRun::value_by_kind(const Expression& expression, const Scope& scope) {
  const auto part = [&](std::size_t i) { return value_of(*expression.parts[i], scope); };
  switch (expression.kind) {
    case Expression::Kind::Constant:
      return expression.constant;
    case Expression::Kind::Name:
      return look_up(expression.text, scope);
    case Expression::Kind::List:
    case Expression::Kind::Tuple: {
      ChatValue::List list;
      for (std::size_t i = 0; i < expression.parts.size(); ++i) list.push_back(MUSTER_TRY(part(i)));
      MUSTER_TRY(budget_.take(list.size() * sizeof(ChatValue)));
      const bool is_tuple = expression.kind == Expression::Kind::Tuple;
      return is_tuple ? ChatValue::tuple(std::move(list)) : ChatValue(std::move(list));
    }
    case Expression::Kind::Map:
      return map_of(expression, scope);
    case Expression::Kind::Attribute:
      return attribute_of(expression, scope);
    case Expression::Kind::Subscript: {
      const auto value = MUSTER_TRY(part(0));
      return element_of(value, MUSTER_TRY(part(1)), budget_);
    }
    case Expression::Kind::Slice:
      return slice_of(expression, scope);
    case Expression::Kind::Call:
      return call_of(expression, scope);
    case Expression::Kind::Filter: {
      const auto value = MUSTER_TRY(part(0));
      const auto arguments = MUSTER_TRY(arguments_of(expression.arguments, scope));
      return apply_filter(expression.text, value, arguments, budget_);
    }
    case Expression::Kind::Test: {
      const auto value = MUSTER_TRY(part(0));
      const auto arguments = MUSTER_TRY(arguments_of(expression.arguments, scope));
      return ChatValue(MUSTER_TRY(apply_test(expression.text, value, arguments, budget_)));
    }
    case Expression::Kind::Not:
      return ChatValue(!is_true(MUSTER_TRY(part(0))));
    case Expression::Kind::And:
    case Expression::Kind::Or:
    case Expression::Kind::Conditional:
      return choice_of(expression, scope);
    case Expression::Kind::Compare:
      return comparison_of(expression, scope);
    case Expression::Kind::Unary: {
      const auto value = MUSTER_TRY(part(0));
      // 0 - 0.0 has no sign, -0.0 has.
      if (const auto* real = value.as_float()) {
        return ChatValue(expression.text == "-" ? -*real : *real);
      }
      return apply_operator(expression.text, ChatValue(std::int64_t{0}), value, budget_);
    }
    case Expression::Kind::Binary: {
      const auto left = MUSTER_TRY(part(0));
      return apply_operator(expression.text, left, MUSTER_TRY(part(1)), budget_);
    }
  }
  return ChatValue();
}

/// What one of the parts decides.
Result<ChatValue> TemplateRun::choice_of(const Expression& expression, const Scope& scope) {
  if (expression.kind == Expression::Kind::Conditional) {
    const auto test = MUSTER_TRY(value_of(*expression.parts[1], scope));
    if (is_true(test)) return value_of(*expression.parts[0], scope);
    if (expression.parts[2] != nullptr) return value_of(*expression.parts[2], scope);
    return ChatValue(ChatValue::Undefined{"the value of an if without else"});
  }
  auto left = MUSTER_TRY(value_of(*expression.parts[0], scope));
  if (is_true(left) == (expression.kind == Expression::Kind::Or)) return left;
  return value_of(*expression.parts[1], scope);
}

// A name that is nowhere is undefined and no error: templates ask for optional variables.
Result<ChatValue> TemplateRun::look_up(std::string_view name, const Scope& scope) {
  for (auto* at = scope.get(); at != nullptr; at = at->parent.get()) {
    MUSTER_TRY(budget_.spend(at->names.size()));
    if (const auto* found = at->find_here(name)) return *found;
  }
  return ChatValue(ChatValue::Undefined{std::string(name)});
}

Result<ChatValue> TemplateRun::map_of(const Expression& expression, const Scope& scope) {
  ChatValue::Map map;
  for (std::size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    const auto key = MUSTER_TRY(value_of(*expression.parts[i], scope));
    auto value = MUSTER_TRY(value_of(*expression.parts[i + 1], scope));
    const auto* text = key.as_text();
    if (text == nullptr) {
      return Error{ErrorKind::Unsupported,
                   fmt::format("a key that is no text but {}", kind_name(key))};
    }
    MUSTER_TRY(budget_.take(sizeof(ChatValue) + text->size()));
    MUSTER_TRY(pay_for_look_up(map, *text, budget_));
    const auto same = std::find_if(map.begin(), map.end(),
                                   [&](const auto& entry) { return entry.first == *text; });
    if (same == map.end()) {
      map.emplace_back(*text, std::move(value));
    } else {
      same->second = std::move(value);
    }
  }
  return ChatValue(std::move(map));
}

// A method goes before a map's key of its name, as in Jinja; as a subscript it would be behind it.
Result<ChatValue> TemplateRun::attribute_of(const Expression& expression, const Scope& scope) {
  const auto value = MUSTER_TRY(value_of(*expression.parts[0], scope));
  if (const auto* fields = value.as_namespace()) {
    MUSTER_TRY(pay_for_look_up((*fields)->fields, expression.text, budget_));
    if (const auto* field = field_of(**fields, expression.text)) return *field;
    return ChatValue(ChatValue::Undefined{expression.text});
  }
  if (has_method(value, expression.text)) return uncalled_method(expression.text);
  if (value.as_map() != nullptr || value.is_undefined()) {
    return element_of(value, ChatValue(expression.text), budget_);
  }
  return ChatValue(ChatValue::Undefined{expression.text});
}

Result<ChatValue> TemplateRun::slice_of(const Expression& expression, const Scope& scope) {
  const auto value = MUSTER_TRY(value_of(*expression.parts[0], scope));
  std::optional<std::int64_t> bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (expression.parts[i + 1] == nullptr) continue;
    const auto bound = MUSTER_TRY(value_of(*expression.parts[i + 1], scope));
    if (bound.is_none()) continue;
    if (bound.as_integer() == nullptr) {
      return invalid_error(fmt::format("a slice takes integers, not {}", kind_name(bound)));
    }
    bounds[i] = *bound.as_integer();
  }
  const auto step = bounds[2].value_or(1);
  if (step == 0) return invalid_error("a slice with a step of 0");
  if (const auto* list = value.as_list()) {
    const auto places = slice_places(list->size(), bounds[0], bounds[1], step);
    MUSTER_TRY(budget_.take(places.size() * sizeof(ChatValue)));
    ChatValue::List taken;
    for (const auto place : places) taken.push_back((*list)[place]);
    return value.is_tuple() ? ChatValue::tuple(std::move(taken)) : ChatValue(std::move(taken));
  }
  if (const auto* text = value.as_text()) {
    MUSTER_TRY(budget_.take(text->size()));
    return ChatValue(sliced_text(*text, bounds[0], bounds[1], step));
  }
  if (value.is_undefined()) return invalid_error(value.as_undefined()->name + " is undefined");
  return invalid_error(fmt::format("a slice of {}", kind_name(value)));
}

Result<ChatArguments> TemplateRun::arguments_of(const TemplateArguments& arguments,
                                                const Scope& scope) {
  ChatArguments values;
  for (const auto& each : arguments.values) {
    values.values.push_back(MUSTER_TRY(value_of(*each, scope)));
  }
  for (const auto& [name, each] : arguments.named) {
    values.named.emplace_back(name, MUSTER_TRY(value_of(*each, scope)));
  }
  return values;
}

// A call on an attribute is a method unless the attribute holds a function; the object is evaluated
// once.
Result<ChatValue> TemplateRun::call_of(const Expression& expression, const Scope& scope) {
  const auto& callee = *expression.parts[0];
  if (callee.kind == Expression::Kind::Attribute) {
    const auto object = MUSTER_TRY(value_of(*callee.parts[0], scope));
    const auto arguments = MUSTER_TRY(arguments_of(expression.arguments, scope));
    const ChatValue* field = object.find(callee.text);
    if (const auto* fields = object.as_namespace()) field = field_of(**fields, callee.text);
    const auto* function = field == nullptr ? nullptr : field->as_function();
    if (function != nullptr) return function->call(arguments, budget_);
    return call_method(object, callee.text, arguments, budget_);
  }
  const auto value = MUSTER_TRY(value_of(callee, scope));
  const auto* function = value.as_function();
  if (function != nullptr) {
    const auto arguments = MUSTER_TRY(arguments_of(expression.arguments, scope));
    return function->call(arguments, budget_);
  }
  if (value.is_undefined()) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("a function that is not known: {}", value.as_undefined()->name)};
  }
  return invalid_error(fmt::format("a call of {}", kind_name(value)));
}

// A chain ends at the first comparison that fails, and what stands behind it is not evaluated.
Result<ChatValue> TemplateRun::comparison_of(const Expression& expression, const Scope& scope) {
  auto left = MUSTER_TRY(value_of(*expression.parts[0], scope));
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    auto right = MUSTER_TRY(value_of(*expression.parts[i + 1], scope));
    if (!MUSTER_TRY(compare_values(expression.operators[i], left, right, budget_))) {
      return ChatValue(false);
    }
    left = std::move(right);
  }
  return ChatValue(true);
}

}  // namespace muster
