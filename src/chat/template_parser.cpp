#include "chat/template_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/text.h"
#include "chat/filters.h"
#include "chat/template_lexer.h"

// Recursive descent, a function for each level of Jinja's operators: conditional, or, and, not,
// comparison, + and -, ~, * and its like, **, sign, then what stands behind a value.

namespace muster {
namespace {

using Token = TemplateToken;
using Expression = TemplateExpression;
using Statement = TemplateStatement;
using Owned = std::unique_ptr<Expression>;
using Made = Result<ExpressionPointer>;

constexpr std::size_t kSizeMax = std::size_t{1} << 20;
constexpr std::size_t kDepthMax = 64;

constexpr std::array<std::string_view, 6> kComparisons{"==", "!=", "<", "<=", ">", ">="};
constexpr std::array<std::string_view, 9> kStatements{"for",   "if",         "set",   "macro", "filter",
                                                      "break", "generation", "continue", "raw"};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<TemplateBlock> run() {
    auto block = MUSTER_TRY(read_block({}));
    if (now().kind != Token::Kind::End) return fault(fmt::format("an unexpected {}", now().text));
    return block;
  }

 private:
  /// One level deeper as long as it lives.
  class Level {
   public:
    explicit Level(std::size_t& depth) : depth_(depth) { ++depth_; }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    std::size_t& depth_;
  };

  Status check_depth() const {
    if (depth_ <= kDepthMax) return Done{};
    return error(ErrorKind::ResourceExhausted, fmt::format("nested deeper than {}", kDepthMax));
  }

  Error error(ErrorKind kind, std::string_view what) const {
    return Error{kind, fmt::format("chat template, line {}: {}", now().line, what)};
  }
  Error fault(std::string_view what) const { return error(ErrorKind::InvalidArgument, what); }

  const Token& now() const { return tokens_[at_]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }

  bool sees(Token::Kind kind, std::string_view text) const {
    return now().kind == kind && now().text == text;
  }
  bool sees_name(std::string_view name) const { return sees(Token::Kind::Name, name); }
  bool sees_operator(std::string_view text) const { return sees(Token::Kind::Operator, text); }
  bool skip_name(std::string_view name) { return sees_name(name) && (next(), true); }
  bool skip_operator(std::string_view text) { return sees_operator(text) && (next(), true); }

  Status expect_operator(std::string_view text) {
    if (skip_operator(text)) return Done{};
    return fault(fmt::format("expected \"{}\", found \"{}\"", text, shown()));
  }

  Result<std::string> expect_name() {
    if (now().kind == Token::Kind::Name) return next().text;
    return fault(fmt::format("expected a name, found \"{}\"", shown()));
  }

  Status expect_statement_end() {
    if (now().kind == Token::Kind::StatementEnd) return next(), Done{};
    return fault(fmt::format("expected the end of the statement, found \"{}\"", shown()));
  }

  std::string shown() const {
    if (now().kind == Token::Kind::End) return "the end of the template";
    if (now().kind == Token::Kind::OutputEnd) return "}}";
    if (now().kind == Token::Kind::StatementEnd) return "%}";
    return now().text.substr(0, 40);
  }

  Owned make(Expression::Kind kind, std::string text = {}) const {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->line = now().line;
    made->text = std::move(text);
    return made;
  }

  // --- statements ---

  /// Up to a statement that begins with one of `ends`, whose name is then the next token.
  Result<TemplateBlock> read_block(const std::vector<std::string_view>& ends) {
    const Level level(depth_);
    MUSTER_TRY(check_depth());
    TemplateBlock block;
    while (now().kind != Token::Kind::End) {
      if (now().kind == Token::Kind::StatementBegin) {
        const auto& name = tokens_[at_ + 1];
        const bool is_end = name.kind == Token::Kind::Name &&
                            std::find(ends.begin(), ends.end(), name.text) != ends.end();
        next();
        if (is_end) return block;
        block.push_back(MUSTER_TRY(read_statement()));
        continue;
      }
      auto statement = std::make_unique<Statement>();
      statement->line = now().line;
      if (now().kind == Token::Kind::Data) {
        statement->text = next().text;
      } else {
        next();  // {{
        statement->kind = Statement::Kind::Output;
        statement->expression = MUSTER_TRY(read_tuple(/*takes_conditional=*/true));
        if (now().kind != Token::Kind::OutputEnd) {
          return fault(fmt::format("expected \"}}}}\", found \"{}\"", shown()));
        }
        next();
      }
      block.push_back(std::move(statement));
    }
    if (ends.empty()) return block;
    return fault(fmt::format("the template ends where {} is missing", ends.back()));
  }

  Result<TemplateBlock> read_body(std::string_view end) {
    MUSTER_TRY(expect_statement_end());
    auto block = MUSTER_TRY(read_block({end}));
    next();
    MUSTER_TRY(expect_statement_end());
    return block;
  }

  Result<std::unique_ptr<const Statement>> read_statement() {
    auto statement = std::make_unique<Statement>();
    statement->line = now().line;
    const auto name = MUSTER_TRY(expect_name());
    if (name == "if") {
      MUSTER_TRY(read_if(*statement));
    } else if (name == "for") {
      MUSTER_TRY(read_for(*statement));
    } else if (name == "set") {
      MUSTER_TRY(read_set(*statement));
    } else if (name == "macro") {
      MUSTER_TRY(read_macro(*statement));
    } else if (name == "filter") {
      statement->kind = Statement::Kind::Filter;
      statement->expression = MUSTER_TRY(read_block_filters(/*is_first_named=*/true));
      statement->blocks.push_back(MUSTER_TRY(read_body("endfilter")));
    } else if (name == "generation") {
      statement->kind = Statement::Kind::Generation;
      statement->blocks.push_back(MUSTER_TRY(read_body("endgeneration")));
    } else if (name == "break" || name == "continue") {
      if (loops_ == 0) return fault(fmt::format("{} outside of a for", name));
      statement->kind = name == "break" ? Statement::Kind::Break : Statement::Kind::Continue;
      MUSTER_TRY(expect_statement_end());
    } else {
      const std::vector<std::string> known(kStatements.begin(), kStatements.end());
      const auto nearest = nearest_name(name, known);
      return error(ErrorKind::Unsupported,
                   fmt::format("a statement that is not known: {}{}", name.substr(0, 40),
                               nearest ? "; the nearest is " + *nearest : std::string()));
    }
    return std::unique_ptr<const Statement>(std::move(statement));
  }

  Status read_if(Statement& statement) {
    statement.kind = Statement::Kind::If;
    while (true) {
      statement.tests.push_back(MUSTER_TRY(read_tuple(/*takes_conditional=*/false)));
      MUSTER_TRY(expect_statement_end());
      statement.blocks.push_back(MUSTER_TRY(read_block({"elif", "else", "endif"})));
      const auto end = next().text;
      if (end == "elif") continue;
      MUSTER_TRY(expect_statement_end());
      if (end == "endif") return Done{};
      statement.blocks.push_back(MUSTER_TRY(read_block({"endif"})));
      next();
      return expect_statement_end();
    }
  }

  Status read_for(Statement& statement) {
    statement.kind = Statement::Kind::For;
    statement.names = MUSTER_TRY(read_targets());
    if (!skip_name("in")) return fault("a for without in");
    statement.expression = MUSTER_TRY(read_tuple(/*takes_conditional=*/false));
    if (skip_name("if")) statement.condition = MUSTER_TRY(read_expression());
    if (sees_name("recursive")) {
      return error(ErrorKind::Unsupported, "a recursive for is not known");
    }
    MUSTER_TRY(expect_statement_end());
    ++loops_;
    statement.blocks.push_back(MUSTER_TRY(read_block({"else", "endfor"})));
    --loops_;
    if (next().text == "else") {
      MUSTER_TRY(expect_statement_end());
      statement.blocks.push_back(MUSTER_TRY(read_block({"endfor"})));
      next();
    }
    return expect_statement_end();
  }

  /// Names to assign to: one or several, with or without brackets.
  Result<std::vector<std::string>> read_targets() {
    std::vector<std::string> names;
    const bool is_bracketed = skip_operator("(");
    do {
      names.push_back(MUSTER_TRY(expect_name()));
    } while (skip_operator(","));
    if (is_bracketed) MUSTER_TRY(expect_operator(")"));
    return names;
  }

  Status read_set(Statement& statement) {
    statement.names = MUSTER_TRY(read_targets());
    if (statement.names.size() == 1 && skip_operator(".")) {
      statement.names[0] += "." + MUSTER_TRY(expect_name());
    }
    if (skip_operator("=")) {
      statement.kind = Statement::Kind::Set;
      statement.expression = MUSTER_TRY(read_tuple(/*takes_conditional=*/true));
      return expect_statement_end();
    }
    statement.kind = Statement::Kind::SetBlock;
    if (statement.names.size() > 1) return fault("a set of several names without =");
    statement.expression = MUSTER_TRY(read_block_filters(/*is_first_named=*/false));
    statement.blocks.push_back(MUSTER_TRY(read_body("endset")));
    return Done{};
  }

  /// Filters that a block's text goes through: "upper | trim", or "| upper" behind a set's name.
  Made read_block_filters(bool is_first_named) {
    ExpressionPointer block = make(Expression::Kind::Name, kBlockText);
    if (is_first_named) block = MUSTER_TRY(read_filter(std::move(block)));
    while (skip_operator("|")) block = MUSTER_TRY(read_filter(std::move(block)));
    return block;
  }

  Status read_macro(Statement& statement) {
    statement.kind = Statement::Kind::Macro;
    statement.text = MUSTER_TRY(expect_name());
    MUSTER_TRY(expect_operator("("));
    while (!sees_operator(")")) {
      if (!statement.names.empty()) MUSTER_TRY(expect_operator(","));
      statement.names.push_back(MUSTER_TRY(expect_name()));
      if (skip_operator("=")) {
        statement.defaults.push_back(MUSTER_TRY(read_expression()));
      } else if (!statement.defaults.empty()) {
        return fault("an argument without a default behind one with a default");
      }
    }
    next();
    const auto loops = std::exchange(loops_, 0);
    statement.blocks.push_back(MUSTER_TRY(read_body("endmacro")));
    loops_ = loops;
    return Done{};
  }

  // --- expressions ---

  /// One expression, or several with commas between as a list.
  Made read_tuple(bool takes_conditional) {
    auto first = MUSTER_TRY(takes_conditional ? read_expression() : read_or());
    if (!sees_operator(",")) return first;
    auto list = make(Expression::Kind::List);
    list->parts.push_back(std::move(first));
    while (skip_operator(",")) {
      if (ends_expression()) break;
      list->parts.push_back(MUSTER_TRY(takes_conditional ? read_expression() : read_or()));
    }
    return ExpressionPointer(std::move(list));
  }

  bool ends_expression() const {
    return now().kind == Token::Kind::OutputEnd || now().kind == Token::Kind::StatementEnd ||
           sees_operator(")");
  }

  Made read_expression() {
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
      value = std::move(made);
    }
    return value;
  }

  Made read_or() {
    auto left = MUSTER_TRY(read_and());
    while (sees_name("or")) {
      auto made = make(Expression::Kind::Or);
      next();
      made->parts.push_back(std::move(left));
      made->parts.push_back(MUSTER_TRY(read_and()));
      left = std::move(made);
    }
    return left;
  }

  Made read_and() {
    auto left = MUSTER_TRY(read_not());
    while (sees_name("and")) {
      auto made = make(Expression::Kind::And);
      next();
      made->parts.push_back(std::move(left));
      made->parts.push_back(MUSTER_TRY(read_not()));
      left = std::move(made);
    }
    return left;
  }

  Made read_not() {
    if (!sees_name("not")) return read_comparison();
    const Level level(depth_);
    MUSTER_TRY(check_depth());
    auto made = make(Expression::Kind::Not);
    next();
    made->parts.push_back(MUSTER_TRY(read_not()));
    return ExpressionPointer(std::move(made));
  }

  std::string comparison() {
    if (now().kind == Token::Kind::Operator &&
        std::find(kComparisons.begin(), kComparisons.end(), now().text) != kComparisons.end()) {
      return next().text;
    }
    if (skip_name("in")) return "in";
    const auto& behind = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
    if (sees_name("not") && behind.kind == Token::Kind::Name && behind.text == "in") {
      next();
      next();
      return "not in";
    }
    return {};
  }

  Made read_comparison() {
    auto left = MUSTER_TRY(read_sum());
    auto made = make(Expression::Kind::Compare);
    for (auto name = comparison(); !name.empty(); name = comparison()) {
      made->operators.push_back(std::move(name));
      if (made->parts.empty()) made->parts.push_back(std::move(left));
      made->parts.push_back(MUSTER_TRY(read_sum()));
    }
    if (made->operators.empty()) return left;
    return ExpressionPointer(std::move(made));
  }

  /// A level of operators that group to the left.
  Made read_left(std::initializer_list<std::string_view> names, Made (Parser::*below)()) {
    auto left = MUSTER_TRY((this->*below)());
    while (now().kind == Token::Kind::Operator &&
           std::find(names.begin(), names.end(), now().text) != names.end()) {
      auto made = make(Expression::Kind::Binary, now().text);
      next();
      made->parts.push_back(std::move(left));
      made->parts.push_back(MUSTER_TRY((this->*below)()));
      left = std::move(made);
    }
    return left;
  }

  Made read_sum() { return read_left({"+", "-"}, &Parser::read_joining); }
  Made read_joining() { return read_left({"~"}, &Parser::read_product); }
  Made read_product() { return read_left({"*", "/", "//", "%"}, &Parser::read_power); }
  Made read_power() { return read_left({"**"}, &Parser::read_filtered); }
  Made read_filtered() { return read_unary(/*takes_filters=*/true); }

  Made read_unary(bool takes_filters) {
    const Level level(depth_);
    MUSTER_TRY(check_depth());
    ExpressionPointer value;
    if (sees_operator("-") || sees_operator("+")) {
      auto made = make(Expression::Kind::Unary, now().text);
      next();
      made->parts.push_back(MUSTER_TRY(read_unary(/*takes_filters=*/false)));
      value = std::move(made);
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

  Made read_primary() {
    const auto& token = now();
    switch (token.kind) {
      case Token::Kind::Name:
        return read_name();
      case Token::Kind::Text: {
        auto made = make(Expression::Kind::Constant);
        std::string text;
        while (now().kind == Token::Kind::Text) text += next().text;
        made->constant = ChatValue(std::move(text));
        return ExpressionPointer(std::move(made));
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

  Made read_name() {
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
    return ExpressionPointer(std::move(made));
  }

  Made read_number() {
    auto made = make(Expression::Kind::Constant);
    const auto& token = now();
    if (token.kind == Token::Kind::Float) {
      made->constant = ChatValue(std::strtod(token.text.c_str(), nullptr));
    } else {
      if (token.text.size() > 18) return fault("an integer of more than 18 digits");
      made->constant = ChatValue(std::int64_t{std::strtoll(token.text.c_str(), nullptr, 10)});
    }
    next();
    return ExpressionPointer(std::move(made));
  }

  Made read_bracketed() {
    if (skip_operator(")")) return ExpressionPointer(make(Expression::Kind::List));
    auto value = MUSTER_TRY(read_tuple(/*takes_conditional=*/true));
    MUSTER_TRY(expect_operator(")"));
    return value;
  }

  Made read_list() {
    auto made = make(Expression::Kind::List);
    while (!skip_operator("]")) {
      if (!made->parts.empty()) {
        MUSTER_TRY(expect_operator(","));
        if (skip_operator("]")) break;
      }
      made->parts.push_back(MUSTER_TRY(read_expression()));
    }
    return ExpressionPointer(std::move(made));
  }

  Made read_map() {
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
    return ExpressionPointer(std::move(made));
  }

  // --- what stands behind a value ---

  Made read_postfix(ExpressionPointer value) {
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
        value = std::move(made);
      } else if (skip_operator("[")) {
        value = MUSTER_TRY(read_subscript(std::move(value)));
      } else if (sees_operator("(")) {
        value = MUSTER_TRY(read_call(std::move(value)));
      } else {
        return value;
      }
    }
  }

  Made read_subscript(ExpressionPointer value) {
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
    return ExpressionPointer(std::move(made));
  }

  Result<TemplateArguments> read_arguments() {
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
      const auto& behind = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
      if (now().kind == Token::Kind::Name && behind.kind == Token::Kind::Operator &&
          behind.text == "=") {
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

  Made read_call(ExpressionPointer value) {
    auto made = make(Expression::Kind::Call);
    made->parts.push_back(std::move(value));
    made->arguments = MUSTER_TRY(read_arguments());
    return ExpressionPointer(std::move(made));
  }

  Made read_filter(ExpressionPointer value) {
    auto made = make(Expression::Kind::Filter);
    made->text = MUSTER_TRY(expect_name());
    if (!is_filter(made->text)) return unknown("filter", made->text, filter_names());
    made->parts.push_back(std::move(value));
    if (sees_operator("(")) made->arguments = MUSTER_TRY(read_arguments());
    return ExpressionPointer(std::move(made));
  }

  Made read_test(ExpressionPointer value) {
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
    if (!is_negated) return ExpressionPointer(std::move(made));
    auto negation = make(Expression::Kind::Not);
    negation->parts.push_back(std::move(made));
    return ExpressionPointer(std::move(negation));
  }

  /// Whether a test's argument follows without brackets: "is divisibleby 3".
  bool begins_argument() const {
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

  Error unknown(std::string_view kind, std::string_view name,
                const std::vector<std::string>& known) const {
    const auto nearest = nearest_name(name, known);
    return error(ErrorKind::Unsupported,
                 fmt::format("a {} that is not known: {}{}", kind, name.substr(0, 40),
                             nearest ? "; the nearest is " + *nearest : std::string()));
  }

  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t loops_ = 0;
};

}  // namespace

Result<TemplateBlock> parse_template(std::string_view source) {
  if (source.size() > kSizeMax) {
    return Error{ErrorKind::ResourceExhausted,
                 fmt::format("a chat template has at most {} bytes: {}", kSizeMax, source.size())};
  }
  return Parser(MUSTER_TRY(lex_template(source))).run();
}

}  // namespace muster
