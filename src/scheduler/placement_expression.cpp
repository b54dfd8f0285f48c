// An expression of an operator's settings, parsed once into a tree and evaluated for each device
// and text. Depth and length are bounded when it is parsed, so evaluation needs no check. A reading
// that is missing makes the result unknown, not zero; only the branch that a condition or && and ||
// select has to be known. A result that is not finite counts as unknown.

#include "scheduler/placement_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::size_t kLengthMax = 4096;
constexpr int kLevelsMax = 64;

// docs/strategies.md shows the same table; values_of in placement.cpp has the same order.
constexpr std::array<PlacementName, kPlacementNameCount> kNames = {{
    {"outstanding_seconds", "predicted seconds until the device has done all it has"},
    {"outstanding_tokens", "tokens bound to the device or with it"},
    {"queued_seconds", "predicted seconds of the texts that are bound to it and wait"},
    {"queued_tokens", "tokens of the texts that are bound to it and wait"},
    {"in_flight_tokens", "tokens that are with the device"},
    {"in_flight_batches", "batches that are with the device"},
    {"free_slots", "batches that it would take at once"},
    {"tokens_per_second", "measured for this text's model; not known before its first batch"},
    {"memory_free", "bytes"},
    {"memory_total", "bytes"},
    {"memory_used_share", "0 to 1"},
    {"utilization", "0 to 1, by the last reading"},
    {"temperature", "degrees Celsius, by the last reading"},
    {"power", "watts, by the last reading"},
    {"weight", "the device's weight in the settings, 1 by default"},
    {"index", "0 for the first device"},
    {"text_tokens", "tokens of the text that is placed"},
    {"text_seconds", "predicted seconds of the text that is placed"},
}};

enum class Kind : std::uint8_t {
  Number,
  Name,
  Negative,
  Not,
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder,
  Less,
  LessOrEqual,
  Greater,
  GreaterOrEqual,
  Equal,
  Unequal,
  And,
  Or,
  Choice,  // condition ? second : third
  Minimum,
  Maximum,
  Absolute,
};

struct Operator {
  std::string_view sign;
  Kind kind;
};

}  // namespace

struct PlacementExpression::Node {
  Kind kind = Kind::Number;
  double number = 0;      // Number
  std::size_t index = 0;  // Name: in kNames
  std::vector<Node> parts{};

  using Values = std::span<const std::optional<double>>;
  std::optional<double> value(Values values) const;
  double binary(double left, double right) const;
  std::optional<double> extreme(Values values) const;
};

/// Recursive descent, a function for each level of precedence, as in C.
class PlacementExpression::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Node> parse() {
    auto root = MUSTER_TRY(choice());
    skip_spaces();
    if (at_ < text_.size()) return fault("an operator is expected before", text_.substr(at_, 12));
    return root;
  }

 private:
  Result<Node> choice() {
    if (++levels_ > kLevelsMax) return fault("it is nested deeper than", "64 levels");
    auto condition = MUSTER_TRY(any_of());
    if (take("?")) {
      auto second = MUSTER_TRY(choice());
      if (!take(":")) return fault("a : is expected after", "?");
      auto third = MUSTER_TRY(choice());
      condition = join(Kind::Choice, std::move(condition), std::move(second), std::move(third));
    }
    --levels_;
    return condition;
  }

  Result<Node> any_of() {
    static constexpr Operator kSigns[] = {{"||", Kind::Or}};
    return left_to_right(kSigns, [this] { return all_of(); });
  }

  Result<Node> all_of() {
    static constexpr Operator kSigns[] = {{"&&", Kind::And}};
    return left_to_right(kSigns, [this] { return comparison(); });
  }

  // a < b < c would compare 1 or 0 with c, which nobody means: it is not taken.
  Result<Node> comparison() {
    static constexpr Operator kSigns[] = {{"<=", Kind::LessOrEqual}, {">=", Kind::GreaterOrEqual},
                                          {"==", Kind::Equal},       {"!=", Kind::Unequal},
                                          {"<", Kind::Less},         {">", Kind::Greater}};
    auto left = MUSTER_TRY(sum());
    for (const auto& [sign, kind] : kSigns) {
      if (!take(sign)) continue;
      auto right = MUSTER_TRY(sum());
      return join(kind, std::move(left), std::move(right));
    }
    return left;
  }

  Result<Node> sum() {
    static constexpr Operator kSigns[] = {{"+", Kind::Add}, {"-", Kind::Subtract}};
    return left_to_right(kSigns, [this] { return product(); });
  }

  Result<Node> product() {
    static constexpr Operator kSigns[] = {
        {"*", Kind::Multiply}, {"/", Kind::Divide}, {"%", Kind::Remainder}};
    return left_to_right(kSigns, [this] { return unary(); });
  }

  Result<Node> unary() {
    const auto kind = take("-") ? Kind::Negative : take("!") ? Kind::Not : Kind::Number;
    if (kind == Kind::Number) return primary();
    if (++levels_ > kLevelsMax) return fault("it is nested deeper than", "64 levels");
    auto part = MUSTER_TRY(unary());
    --levels_;
    return join(kind, std::move(part));
  }

  Result<Node> primary() {
    if (take("(")) {
      auto inner = MUSTER_TRY(choice());
      if (!take(")")) return fault("a ) is missing before", rest());
      return inner;
    }
    skip_spaces();
    const auto is_word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const bool is_number =
        at_ < text_.size() && ((text_[at_] >= '0' && text_[at_] <= '9') || text_[at_] == '.');
    if (is_number) return number();
    if (end == at_) return fault("a number or a name is expected before", rest());
    return name(text_.substr(at_, end - at_));
  }

  Result<Node> number() {
    double value = 0;
    const auto* begin = text_.data() + at_;
    const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (code != std::errc{} || !std::isfinite(value)) return fault("not a number:", rest());
    at_ += static_cast<std::size_t>(end - begin);
    return Node{.kind = Kind::Number, .number = value};
  }

  Result<Node> name(std::string_view word) {
    static constexpr Operator kFunctions[] = {
        {"min", Kind::Minimum}, {"max", Kind::Maximum}, {"abs", Kind::Absolute}};
    for (const auto& [sign, kind] : kFunctions) {
      if (word == sign) return function(word, kind);
    }
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i].name != word) continue;
      at_ += word.size();
      return Node{.kind = Kind::Name, .index = i};
    }
    std::vector<std::string> candidates;
    for (const auto& [known, meaning] : kNames) candidates.emplace_back(known);
    for (const auto& [known, kind] : kFunctions) candidates.emplace_back(known);
    if (const auto nearest = nearest_name(word, candidates)) {
      return fault("unknown name", fmt::format("{}: did you mean {}?", word, *nearest));
    }
    return fault("unknown name",
                 fmt::format("{}; known are {}", word, fmt::join(candidates, ", ")));
  }

  Result<Node> function(std::string_view word, Kind kind) {
    at_ += word.size();
    if (!take("(")) return fault("a ( is expected after", word);
    std::vector<Node> parts;
    do {
      parts.push_back(MUSTER_TRY(choice()));
    } while (take(","));
    if (!take(")")) return fault("a ) is missing before", rest());
    if (kind == Kind::Absolute && parts.size() != 1) return fault("one argument is taken by", word);
    return Node{.kind = kind, .parts = std::move(parts)};
  }

  template <std::size_t count, typename Next>
  Result<Node> left_to_right(const Operator (&signs)[count], const Next& next) {
    auto left = MUSTER_TRY(next());
    for (;;) {
      const auto* found = std::find_if(std::begin(signs), std::end(signs),
                                       [this](const Operator& sign) { return take(sign.sign); });
      if (found == std::end(signs)) return left;
      auto right = MUSTER_TRY(next());
      left = join(found->kind, std::move(left), std::move(right));
    }
  }

  template <typename... Parts>
  static Node join(Kind kind, Parts... parts) {
    Node node{.kind = kind};
    node.parts.reserve(sizeof...(parts));
    (node.parts.push_back(std::move(parts)), ...);
    return node;
  }

  bool take(std::string_view sign) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  void skip_spaces() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }

  std::string_view rest() const {
    return at_ < text_.size() ? text_.substr(at_, 12) : std::string_view("the end");
  }

  Error fault(std::string_view what, std::string_view value) const {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("expression, column {}: {} {}", at_ + 1, what, value)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int levels_ = 0;
};

std::optional<double> PlacementExpression::Node::value(Values values) const {
  switch (kind) {
    case Kind::Number:
      return number;
    case Kind::Name:
      return index < values.size() ? values[index] : std::nullopt;
    case Kind::Choice: {
      const auto condition = parts[0].value(values);
      if (!condition) return std::nullopt;
      return parts[*condition != 0 ? 1 : 2].value(values);
    }
    case Kind::Minimum:
    case Kind::Maximum:
      return extreme(values);
    default:
      break;
  }
  const auto left = parts[0].value(values);
  if (!left) return std::nullopt;
  switch (kind) {
    case Kind::Negative:
      return -*left;
    case Kind::Not:
      return *left == 0 ? 1 : 0;
    case Kind::Absolute:
      return std::fabs(*left);
    case Kind::And:
      if (*left == 0) return 0;
      break;
    case Kind::Or:
      if (*left != 0) return 1;
      break;
    default:
      break;
  }
  const auto right = parts[1].value(values);
  return right ? std::optional(binary(*left, *right)) : std::nullopt;
}

double PlacementExpression::Node::binary(double left, double right) const {
  switch (kind) {
    case Kind::Add:
      return left + right;
    case Kind::Subtract:
      return left - right;
    case Kind::Multiply:
      return left * right;
    case Kind::Divide:
      return left / right;
    case Kind::Remainder:
      return std::fmod(left, right);
    case Kind::Less:
      return left < right ? 1 : 0;
    case Kind::LessOrEqual:
      return left <= right ? 1 : 0;
    case Kind::Greater:
      return left > right ? 1 : 0;
    case Kind::GreaterOrEqual:
      return left >= right ? 1 : 0;
    case Kind::Equal:
      return left == right ? 1 : 0;
    case Kind::Unequal:
      return left != right ? 1 : 0;
    default:  // And, Or, whose left side did not decide
      return right != 0 ? 1 : 0;
  }
}

std::optional<double> PlacementExpression::Node::extreme(Values values) const {
  std::optional<double> best;
  for (const auto& part : parts) {
    const auto own = part.value(values);
    if (!own) return std::nullopt;
    const bool is_better = !best || (kind == Kind::Minimum ? *own < *best : *own > *best);
    if (is_better) best = own;
  }
  return best;
}

std::span<const PlacementName> PlacementExpression::names() { return kNames; }

Result<std::shared_ptr<const PlacementExpression>> PlacementExpression::parse(
    std::string_view text) {
  if (text.size() > kLengthMax) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("expression is longer than {} characters: {}", kLengthMax, text.size())};
  }
  auto root = MUSTER_TRY(Parser(text).parse());
  auto expression = std::make_shared<PlacementExpression>();
  expression->text_ = text;
  expression->root_ = std::make_shared<const Node>(std::move(root));
  return std::shared_ptr<const PlacementExpression>(std::move(expression));
}

std::optional<double> PlacementExpression::evaluate(
    std::span<const std::optional<double>> values) const {
  if (!root_) return std::nullopt;
  const auto value = root_->value(values);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace muster
