// Recursive descent over Jinja's grammar, a function for each level of precedence, from the loosest
// to the tightest binding. Where Jinja departs from Python this follows Jinja: `~` binds tighter
// than `+`, and a unary sign takes a value without its filters. Depth is checked where the grammar
// recurs and length where a chain grows, so neither a parse nor a run of the tree can exhaust the
// stack. Source: Jinja 3.1, parser.py.

#include "chat/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text.h"
#include "chat/filters.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, 6> kComparisons{"==", "!=", "<", "<=", ">", ">="};

}  // namespace

// A comma makes a tuple, not the brackets. Where `if` would belong to a statement, as in a for,
// conditionals are left out.
ExpressionParser::Made ExpressionParser::read_tuple(bool takes_conditional) {
  auto first = MUSTER_TRY(takes_conditional ? read_expression() : read_or());
  if (!sees_operator(",")) return first;
  auto list = make(Expression::Kind::Tuple);
  list->parts.push_back(std::move(first));
  while (skip_operator(",")) {
    if (ends_expression()) break;
    list->parts.push_back(MUSTER_TRY(takes_conditional ? read_expression() : read_or()));
  }
  return sealed(std::move(list));
}

bool ExpressionParser::ends_expression() const {
  return now().kind == Token::Kind::OutputEnd || now().kind == Token::Kind::StatementEnd ||
         sees_operator(")");
}

// The condition is read without a conditional of its own, but what follows `else` may be one: a if
// b else c if d else e groups to the right.
ExpressionParser::Made ExpressionParser::read_expression() {
  const Level level(depth_);
  MUSTER_TRY(check_depth());
  auto value = MUSTER_TRY(read_or());
  while (sees_name("if")) {
    auto made = make(Expression::Kind::Conditional);
    next();
    made->parts.push_back(std::move(value));
    made->parts.push_back(MUSTER_TRY(read_or()));
    ExpressionPointer otherwise;
    if (skip_name("else")) otherwise = MUSTER_TRY(read_expression());
    made->parts.push_back(std::move(otherwise));
    value = MUSTER_TRY(sealed(std::move(made)));
  }
  return value;
}

ExpressionParser::Made ExpressionParser::read_or() {
  auto left = MUSTER_TRY(read_and());
  while (sees_name("or")) {
    auto made = make(Expression::Kind::Or);
    next();
    made->parts.push_back(std::move(left));
    made->parts.push_back(MUSTER_TRY(read_and()));
    left = MUSTER_TRY(sealed(std::move(made)));
  }
  return left;
}

ExpressionParser::Made ExpressionParser::read_and() {
  auto left = MUSTER_TRY(read_not());
  while (sees_name("and")) {
    auto made = make(Expression::Kind::And);
    next();
    made->parts.push_back(std::move(left));
    made->parts.push_back(MUSTER_TRY(read_not()));
    left = MUSTER_TRY(sealed(std::move(made)));
  }
  return left;
}

ExpressionParser::Made ExpressionParser::read_not() {
  if (!sees_name("not")) return read_comparison();
  const Level level(depth_);
  MUSTER_TRY(check_depth());
  auto made = make(Expression::Kind::Not);
  next();
  made->parts.push_back(MUSTER_TRY(read_not()));
  return sealed(std::move(made));
}

// `not` may also begin an operand, so it counts as an operator only with `in` behind it.
std::string ExpressionParser::comparison() {
  if (now().kind == Token::Kind::Operator &&
      std::find(kComparisons.begin(), kComparisons.end(), now().text) != kComparisons.end()) {
    return next().text;
  }
  if (skip_name("in")) return "in";
  const auto& following = behind();
  if (sees_name("not") && following.kind == Token::Kind::Name && following.text == "in") {
    next();
    next();
    return "not in";
  }
  return {};
}

// Comparisons chain as in Python: all of a < b < c becomes one node, which evaluates b once.
ExpressionParser::Made ExpressionParser::read_comparison() {
  auto left = MUSTER_TRY(read_sum());
  auto made = make(Expression::Kind::Compare);
  for (auto name = comparison(); !name.empty(); name = comparison()) {
    made->operators.push_back(std::move(name));
    if (made->parts.empty()) made->parts.push_back(std::move(left));
    made->parts.push_back(MUSTER_TRY(read_sum()));
  }
  if (made->operators.empty()) return left;
  return sealed(std::move(made));
}

ExpressionParser::Made ExpressionParser::read_left(std::initializer_list<std::string_view> names,
                                                   Made (ExpressionParser::*below)()) {
  auto left = MUSTER_TRY((this->*below)());
  while (now().kind == Token::Kind::Operator &&
         std::find(names.begin(), names.end(), now().text) != names.end()) {
    auto made = make(Expression::Kind::Binary, now().text);
    next();
    made->parts.push_back(std::move(left));
    made->parts.push_back(MUSTER_TRY((this->*below)()));
    left = MUSTER_TRY(sealed(std::move(made)));
  }
  return left;
}

ExpressionParser::Made ExpressionParser::read_sum() {
  return read_left({"+", "-"}, &ExpressionParser::read_joining);
}

ExpressionParser::Made ExpressionParser::read_joining() {
  return read_left({"~"}, &ExpressionParser::read_product);
}

ExpressionParser::Made ExpressionParser::read_product() {
  return read_left({"*", "/", "//", "%"}, &ExpressionParser::read_power);
}

ExpressionParser::Made ExpressionParser::read_power() {
  return read_left({"**"}, &ExpressionParser::read_filtered);
}

ExpressionParser::Made ExpressionParser::read_filtered() {
  return read_unary(/*takes_filters=*/true);
}

// A sign applies before filters, so the filters of -1|abs see -1.
ExpressionParser::Made ExpressionParser::read_unary(bool takes_filters) {
  const Level level(depth_);
  MUSTER_TRY(check_depth());
  ExpressionPointer value;
  if (sees_operator("-") || sees_operator("+")) {
    auto made = make(Expression::Kind::Unary, now().text);
    next();
    made->parts.push_back(MUSTER_TRY(read_unary(/*takes_filters=*/false)));
    value = MUSTER_TRY(sealed(std::move(made)));
  } else {
    value = MUSTER_TRY(read_primary());
  }
  value = MUSTER_TRY(read_postfix(std::move(value)));
  if (!takes_filters) return value;
  while (true) {
    if (skip_operator("|")) {
      value = MUSTER_TRY(read_filter(std::move(value)));
    } else if (skip_name("is")) {
      value = MUSTER_TRY(read_test(std::move(value)));
    } else if (sees_operator("(")) {
      value = MUSTER_TRY(read_call(std::move(value)));
    } else {
      return value;
    }
  }
}

// Adjacent texts are joined, as in Python.
ExpressionParser::Made ExpressionParser::read_primary() {
  const auto& token = now();
  switch (token.kind) {
    case Token::Kind::Name:
      return read_name();
    case Token::Kind::Text: {
      auto made = make(Expression::Kind::Constant);
      std::string text;
      while (now().kind == Token::Kind::Text) text += next().text;
      made->constant = ChatValue(std::move(text));
      return sealed(std::move(made));
    }
    case Token::Kind::Integer:
    case Token::Kind::Float:
      return read_number();
    case Token::Kind::Operator:
      if (skip_operator("(")) return read_bracketed();
      if (skip_operator("[")) return read_list();
      if (skip_operator("{")) return read_map();
      break;
    default:
      break;
  }
  return fault(fmt::format("expected an expression, found \"{}\"", shown()));
}

ExpressionParser::Made ExpressionParser::read_name() {
  const auto& name = now().text;
  auto made = make(Expression::Kind::Constant);
  if (name == "true" || name == "True") {
    made->constant = ChatValue(true);
  } else if (name == "false" || name == "False") {
    made->constant = ChatValue(false);
  } else if (name != "none" && name != "None") {
    made->kind = Expression::Kind::Name;
    made->text = name;
  }
  next();
  return sealed(std::move(made));
}

// Any number of 18 digits fits into 64 bits; one of 19 may not.
ExpressionParser::Made ExpressionParser::read_number() {
  auto made = make(Expression::Kind::Constant);
  const auto& token = now();
  if (token.kind == Token::Kind::Float) {
    made->constant = ChatValue(std::strtod(token.text.c_str(), nullptr));
  } else {
    if (token.text.size() > 18) return fault("an integer of more than 18 digits");
    made->constant = ChatValue(std::int64_t{std::strtoll(token.text.c_str(), nullptr, 10)});
  }
  next();
  return sealed(std::move(made));
}

ExpressionParser::Made ExpressionParser::read_bracketed() {
  if (skip_operator(")")) return sealed(make(Expression::Kind::Tuple));
  auto value = MUSTER_TRY(read_tuple(/*takes_conditional=*/true));
  MUSTER_TRY(expect_operator(")"));
  return value;
}

ExpressionParser::Made ExpressionParser::read_list() {
  auto made = make(Expression::Kind::List);
  while (!skip_operator("]")) {
    if (!made->parts.empty()) {
      MUSTER_TRY(expect_operator(","));
      if (skip_operator("]")) break;
    }
    made->parts.push_back(MUSTER_TRY(read_expression()));
  }
  return sealed(std::move(made));
}

ExpressionParser::Made ExpressionParser::read_map() {
  auto made = make(Expression::Kind::Map);
  while (!skip_operator("}")) {
    if (!made->parts.empty()) {
      MUSTER_TRY(expect_operator(","));
      if (skip_operator("}")) break;
    }
    made->parts.push_back(MUSTER_TRY(read_expression()));
    MUSTER_TRY(expect_operator(":"));
    made->parts.push_back(MUSTER_TRY(read_expression()));
  }
  return sealed(std::move(made));
}

ExpressionParser::Made ExpressionParser::read_postfix(ExpressionPointer value) {
  while (true) {
    if (skip_operator(".")) {
      auto made = make(Expression::Kind::Attribute);
      if (now().kind == Token::Kind::Integer) {
        made->kind = Expression::Kind::Subscript;
        made->parts.push_back(std::move(value));
        made->parts.push_back(MUSTER_TRY(read_number()));
      } else {
        made->text = MUSTER_TRY(expect_name());
        made->parts.push_back(std::move(value));
      }
      value = MUSTER_TRY(sealed(std::move(made)));
    } else if (skip_operator("[")) {
      value = MUSTER_TRY(read_subscript(std::move(value)));
    } else if (sees_operator("(")) {
      value = MUSTER_TRY(read_call(std::move(value)));
    } else {
      return value;
    }
  }
}

// A slice always has four parts, absent bounds as null, so that evaluation need not count them.
ExpressionParser::Made ExpressionParser::read_subscript(ExpressionPointer value) {
  auto made = make(Expression::Kind::Subscript);
  made->parts.push_back(std::move(value));
  const auto read_bound = [&]() -> Status {
    const bool is_absent = sees_operator(":") || sees_operator("]");
    made->parts.push_back(is_absent ? nullptr : MUSTER_TRY(read_expression()));
    return Done{};
  };
  MUSTER_TRY(read_bound());
  if (sees_operator(":")) {
    made->kind = Expression::Kind::Slice;
    while (skip_operator(":")) MUSTER_TRY(read_bound());
    if (made->parts.size() > 4) return fault("a slice of more than three parts");
    made->parts.resize(4);
  } else if (made->parts[1] == nullptr) {
    return fault("a subscript without an index");
  }
  MUSTER_TRY(expect_operator("]"));
  return sealed(std::move(made));
}

Result<TemplateArguments> ExpressionParser::read_arguments() {
  TemplateArguments arguments;
  MUSTER_TRY(expect_operator("("));
  bool is_first = true;
  while (!skip_operator(")")) {
    if (!is_first) {
      MUSTER_TRY(expect_operator(","));
      if (skip_operator(")")) break;
    }
    is_first = false;
    if (sees_operator("*") || sees_operator("**")) {
      return error(ErrorKind::Unsupported, "arguments from a list or map are not known");
    }
    const auto& following = behind();
    if (now().kind == Token::Kind::Name && following.kind == Token::Kind::Operator &&
        following.text == "=") {
      auto name = next().text;
      next();
      arguments.named.emplace_back(std::move(name), MUSTER_TRY(read_expression()));
    } else if (!arguments.named.empty()) {
      return fault("an argument without a name behind one with a name");
    } else {
      arguments.values.push_back(MUSTER_TRY(read_expression()));
    }
  }
  return arguments;
}

ExpressionParser::Made ExpressionParser::read_call(ExpressionPointer value) {
  auto made = make(Expression::Kind::Call);
  made->parts.push_back(std::move(value));
  made->arguments = MUSTER_TRY(read_arguments());
  return sealed(std::move(made));
}

// A filter that is not known is refused while parsing: a template that cannot run is found before
// its first conversation.
ExpressionParser::Made ExpressionParser::read_filter(ExpressionPointer value) {
  auto made = make(Expression::Kind::Filter);
  made->text = MUSTER_TRY(expect_name());
  if (!is_filter(made->text)) return unknown("filter", made->text, filter_names());
  made->parts.push_back(std::move(value));
  if (sees_operator("(")) made->arguments = MUSTER_TRY(read_arguments());
  return sealed(std::move(made));
}

// A test takes one argument without brackets, as in `x is divisibleby 3`. The words that continue
// an expression are no such argument.
ExpressionParser::Made ExpressionParser::read_test(ExpressionPointer value) {
  const bool is_negated = skip_name("not");
  auto made = make(Expression::Kind::Test);
  made->text = MUSTER_TRY(expect_name());
  if (!is_test(made->text)) return unknown("test", made->text, test_names());
  made->parts.push_back(std::move(value));
  if (sees_operator("(")) {
    made->arguments = MUSTER_TRY(read_arguments());
  } else if (begins_argument()) {
    auto argument = MUSTER_TRY(read_primary());
    made->arguments.values.push_back(MUSTER_TRY(read_postfix(std::move(argument))));
  }
  auto test = MUSTER_TRY(sealed(std::move(made)));
  if (!is_negated) return test;
  auto negation = make(Expression::Kind::Not);
  negation->parts.push_back(std::move(test));
  return sealed(std::move(negation));
}

bool ExpressionParser::begins_argument() const {
  switch (now().kind) {
    case Token::Kind::Name:
      return !(now().text == "else" || now().text == "or" || now().text == "and" ||
               now().text == "is" || now().text == "if" || now().text == "not" ||
               now().text == "in");
    case Token::Kind::Text:
    case Token::Kind::Integer:
    case Token::Kind::Float:
      return true;
    case Token::Kind::Operator:
      return now().text == "[" || now().text == "{";
    default:
      return false;
  }
}

Error ExpressionParser::unknown(std::string_view kind, std::string_view name,
                                const std::vector<std::string>& known) const {
  const auto nearest = nearest_name(name, known);
  return error(ErrorKind::Unsupported,
               fmt::format("a {} that is not known: {}{}", kind, name.substr(0, 40),
                           nearest ? "; the nearest is " + *nearest : std::string()));
}

}  // namespace muster
