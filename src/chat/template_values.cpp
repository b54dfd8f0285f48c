// The values of a tree's expressions. Every node costs a step and every level counts, so that a
// template that loops or calls itself without an end is stopped; a text that is made costs its
// bytes. An error gets the line of the innermost expression that failed, once. Source: Jinja 3.1,
// compiler.py and environment.py.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "chat/filters.h"
#include "chat/template_run.h"
#include "chat/text_work.h"

namespace muster {
namespace {

using Expression = TemplateExpression;

const ChatValue* field_of(const ChatValue::Namespace& fields, std::string_view name) {
  for (const auto& [key, value] : fields.fields) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

Result<ChatValue> TemplateRun::value_of(const Expression& expression, const Scope& scope) {
  const ChatBudget::Level level(budget_);
  MUSTER_TRY(budget_.check_depth());
  MUSTER_TRY(budget_.spend());
  auto value = value_by_kind(expression, scope);
  if (!value) return at_template_line(value.error(), expression.line);
  const auto checked = budget_.check(*value);
  if (!checked) return at_template_line(checked.error(), expression.line);
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
