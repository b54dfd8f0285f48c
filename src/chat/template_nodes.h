#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace muster {

struct TemplateExpression;
using ExpressionPointer = std::unique_ptr<const TemplateExpression>;

/// The arguments of a call, a filter or a test as they are written.
struct TemplateArguments {
  std::vector<ExpressionPointer> values;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
};

/// An expression: its kind, what it is made of, and where it stands.
struct TemplateExpression {
  enum class Kind : std::uint8_t {
    Constant,     // constant
    Name,         // text
    List,         // parts
    Tuple,        // parts
    Map,          // parts: key, value, key, value, ...
    Attribute,    // parts[0] . text
    Subscript,    // parts[0] [ parts[1] ]
    Slice,        // parts[0] [ parts[1] : parts[2] : parts[3] ], absent ones null
    Call,         // parts[0] ( arguments )
    Filter,       // parts[0] | text ( arguments )
    Test,         // parts[0] is text ( arguments )
    Not,          // parts[0]
    And,          // parts
    Or,           // parts
    Conditional,  // parts[0] if parts[1] else parts[2], which may be null
    Compare,      // parts[0] operators[0] parts[1] operators[1] parts[2] ...
    Unary,        // text parts[0]
    Binary,       // parts[0] text parts[1]
  };
  Kind kind = Kind::Constant;
  std::uint32_t line = 1;
  std::uint32_t depth = 1;  // of the tree below
  std::string text;
  ChatValue constant;
  std::vector<ExpressionPointer> parts;
  TemplateArguments arguments;
  std::vector<std::string> operators;
};

struct TemplateStatement;
using TemplateBlock = std::vector<std::unique_ptr<const TemplateStatement>>;

/// A statement of a template.
struct TemplateStatement {
  enum class Kind : std::uint8_t {
    Data,        // text
    Output,      // expression
    If,          // tests[i] -> blocks[i], and one block more for else
    For,         // names in expression, if condition; blocks: body, else
    Set,         // names = expression; a name may be "namespace.field"
    SetBlock,    // names[0] = blocks[0], through expression's filters, if there is one
    Macro,       // text, names and defaults; blocks[0]
    Filter,      // blocks[0] through expression's filters
    Generation,  // blocks[0]
    Break,
    Continue,
  };
  Kind kind = Kind::Data;
  std::uint32_t line = 1;
  std::string text;
  std::vector<std::string> names;
  ExpressionPointer expression;
  ExpressionPointer condition;
  std::vector<ExpressionPointer> tests;     // If
  std::vector<ExpressionPointer> defaults;  // Macro: of the last names
  std::vector<TemplateBlock> blocks;
};

/// The expression that stands for the text of a block within Filter and SetBlock.
inline constexpr const char* kBlockText = " block";

}  // namespace muster
