// Statements become a tree of blocks that a run only reads, so one parse serves all conversations.
// What this cannot run is refused here with the nearest known name, not when a conversation happens
// to reach it. Depth, size and the place of break and continue are checked once, so that a run need
// not. Source: Jinja 3.1, parser.py.

#include "chat/template_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "chat/expression_parser.h"
#include "chat/template_lexer.h"

// Statements by recursive descent; a block ends at a statement whose name its opening one expects.

namespace muster {
namespace {

using Statement = TemplateStatement;

constexpr std::size_t kSizeMax = std::size_t{1} << 20;

constexpr std::array<std::string_view, 9> kStatements{
    "for", "if", "set", "macro", "filter", "break", "generation", "continue", "raw"};

class Parser : private ExpressionParser {
 public:
  explicit Parser(std::vector<TemplateToken> tokens) : ExpressionParser(std::move(tokens)) {}

  Result<TemplateBlock> run() {
    auto block = MUSTER_TRY(read_block({}));
    if (now().kind != Token::Kind::End) return fault(fmt::format("an unexpected {}", shown()));
    return block;
  }

 private:
  /// Up to a statement that begins with one of `ends`, whose name is then the next token.
  // The name of the end is left to the caller, which knows what may follow it: an else, or nothing.
  Result<TemplateBlock> read_block(const std::vector<std::string_view>& ends) {
    const Level level(depth_);
    MUSTER_TRY(check_depth());
    TemplateBlock block;
    while (now().kind != Token::Kind::End) {
      if (now().kind == Token::Kind::StatementBegin) {
        const auto& name = behind();
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

  // A body that is called has no loop around it, whatever encloses its definition: a break there
  // would leave a call.
  Result<TemplateBlock> read_called_body(std::string_view end) {
    const auto loops = std::exchange(loops_, 0);
    auto block = MUSTER_TRY(read_body(end));
    loops_ = loops;
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
      statement->blocks.push_back(MUSTER_TRY(read_called_body("endgeneration")));
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

  // One list of tests and one of blocks; a block more than tests is the else.
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

  // A target with a dot is kept as one name and taken apart at a run: only a namespace may stand
  // before it.
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
  // The block's text is a name like any other, so its filters are an ordinary expression.
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
    statement.blocks.push_back(MUSTER_TRY(read_called_body("endmacro")));
    return Done{};
  }

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
