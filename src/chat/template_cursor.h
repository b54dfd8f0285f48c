#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/template_lexer.h"
#include "chat/template_nodes.h"

namespace muster {

/// The tokens of a template with a place in them, and what every level of its parser needs.
///
/// Owner: one parse; not thread-safe.
class TemplateCursor {
 protected:
  using Token = TemplateToken;
  using Expression = TemplateExpression;
  using Owned = std::unique_ptr<Expression>;
  using Made = Result<ExpressionPointer>;

  explicit TemplateCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

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

  Status check_depth() const;
  Error error(ErrorKind kind, std::string_view what) const;
  Error fault(std::string_view what) const;
  const Token& now() const;
  const Token& next();
  bool sees(Token::Kind kind, std::string_view text) const;
  bool sees_name(std::string_view name) const;
  bool sees_operator(std::string_view text) const;
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view text);
  Status expect_operator(std::string_view text);
  Result<std::string> expect_name();
  Status expect_statement_end();
  std::string shown() const;
  Owned make(Expression::Kind kind, std::string text = {}) const;
  /// The expression with how deep it is: chains of operators, filters or subscripts nest without
  /// any brackets, and what walks over them goes as deep.
  Made sealed(Owned made) const;

  /// The token behind this one; the last one at the end.
  const Token& behind() const;

  std::size_t depth_ = 0;

 private:
  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace muster
