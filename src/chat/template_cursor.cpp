// The reader's place among the tokens, and the limits on what is built from them. The last token is
// an end that is never passed, so looking one token ahead is always allowed. Two limits guard the
// stack: nesting while parsing, and the depth of the finished tree, which chains like a + b + c
// deepen without any nesting. Every error carries its line.

#include "chat/template_cursor.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {
namespace {

constexpr std::size_t kDepthMax = 64;
constexpr std::uint32_t kChainMax = 200;

}  // namespace

Status TemplateCursor::check_depth() const {
  if (depth_ <= kDepthMax) return Done{};
  return error(ErrorKind::ResourceExhausted, fmt::format("nested deeper than {}", kDepthMax));
}

Error TemplateCursor::error(ErrorKind kind, std::string_view what) const {
  return Error{kind, fmt::format("chat template, line {}: {}", now().line, what)};
}

Error TemplateCursor::fault(std::string_view what) const {
  return error(ErrorKind::InvalidArgument, what);
}

const TemplateToken& TemplateCursor::now() const { return tokens_[at_]; }

// Stays at the end, so a parser that reads on meets the end again and not a bound.
const TemplateToken& TemplateCursor::next() {
  return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_];
}

bool TemplateCursor::sees(Token::Kind kind, std::string_view text) const {
  return now().kind == kind && now().text == text;
}

bool TemplateCursor::sees_name(std::string_view name) const {
  return sees(Token::Kind::Name, name);
}

bool TemplateCursor::sees_operator(std::string_view text) const {
  return sees(Token::Kind::Operator, text);
}

bool TemplateCursor::skip_name(std::string_view name) { return sees_name(name) && (next(), true); }

bool TemplateCursor::skip_operator(std::string_view text) {
  return sees_operator(text) && (next(), true);
}

Status TemplateCursor::expect_operator(std::string_view text) {
  if (skip_operator(text)) return Done{};
  return fault(fmt::format("expected \"{}\", found \"{}\"", text, shown()));
}

Result<std::string> TemplateCursor::expect_name() {
  if (now().kind == Token::Kind::Name) return next().text;
  return fault(fmt::format("expected a name, found \"{}\"", shown()));
}

// Leftover words in a tag are a fault, since they are mostly a feature that is not known here.
Status TemplateCursor::expect_statement_end() {
  if (now().kind == Token::Kind::StatementEnd) return next(), Done{};
  return fault(fmt::format("expected the end of the statement, found \"{}\"", shown()));
}

std::string TemplateCursor::shown() const {
  if (now().kind == Token::Kind::End) return "the end of the template";
  if (now().kind == Token::Kind::OutputEnd) return "}}";
  if (now().kind == Token::Kind::StatementEnd) return "%}";
  return now().text.substr(0, 40);
}

TemplateCursor::Owned TemplateCursor::make(Expression::Kind kind, std::string text) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = now().line;
  made->text = std::move(text);
  return made;
}

// A node's depth is one more than its deepest part's; counted once when the node is finished, it
// costs nothing at a run.
TemplateCursor::Made TemplateCursor::sealed(Owned made) const {
  const auto count = [&](const ExpressionPointer& part) {
    if (part != nullptr) made->depth = std::max(made->depth, part->depth + 1);
  };
  for (const auto& part : made->parts) count(part);
  for (const auto& part : made->arguments.values) count(part);
  for (const auto& [name, part] : made->arguments.named) count(part);
  if (made->depth > kChainMax) {
    return error(ErrorKind::ResourceExhausted,
                 fmt::format("an expression of more than {} parts in a chain", kChainMax));
  }
  return ExpressionPointer(std::move(made));
}

const TemplateToken& TemplateCursor::behind() const {
  return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
}

}  // namespace muster
