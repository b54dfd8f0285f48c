#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/template_cursor.h"

namespace muster {

/// Reads the expressions of a template by recursive descent, a function for each level of Jinja's
/// operators: conditional, or, and, not, comparison, + and -, ~, * and its like, **, sign, then
/// what stands behind a value.
///
/// Errors: as `parse_template`. Source: Jinja 3.1, parser.py.
class ExpressionParser : public TemplateCursor {
 protected:
  using TemplateCursor::TemplateCursor;

  /// One expression, or several with commas between as a list.
  Made read_tuple(bool takes_conditional);
  Made read_expression();
  Made read_filter(ExpressionPointer value);

 private:
  bool ends_expression() const;
  Made read_or();
  Made read_and();
  Made read_not();
  std::string comparison();
  Made read_comparison();
  /// A level of operators that group to the left.
  Made read_left(std::initializer_list<std::string_view> names, Made (ExpressionParser::*below)());
  Made read_sum();
  Made read_joining();
  Made read_product();
  Made read_power();
  Made read_filtered();
  Made read_unary(bool takes_filters);
  Made read_primary();
  Made read_name();
  Made read_number();
  Made read_bracketed();
  Made read_list();
  Made read_map();
  Made read_postfix(ExpressionPointer value);
  Made read_subscript(ExpressionPointer value);
  Result<TemplateArguments> read_arguments();
  Made read_call(ExpressionPointer value);
  Made read_test(ExpressionPointer value);
  /// Whether a test's argument follows without brackets: "is divisibleby 3".
  bool begins_argument() const;
  Error unknown(std::string_view kind, std::string_view name,
                const std::vector<std::string>& known) const;
};

}  // namespace muster
