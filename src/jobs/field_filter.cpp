// Conditions on kept fields: a recursive descent over the text, and a tree that is asked row by
// row, so that no filter, however nested, takes memory for each row.

#include "jobs/field_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::size_t kSizeMost = 4096;
constexpr int kLevelsMost = 64;
constexpr std::size_t kComparisonsMost = 64;
constexpr std::size_t kValuesMost = 256;

enum class Kind : std::uint8_t { Any, All, Not, Compare };

enum class Sign : std::uint8_t { Is, Equal, Less, LessOrEqual, Greater, GreaterOrEqual, Holds };

bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         byte >= 0x80 || std::string_view("_.-+:/@#%*$").find(c) != std::string_view::npos;
}

bool is_keyword(std::string_view word, std::string_view keyword) {
  return std::equal(word.begin(), word.end(), keyword.begin(), keyword.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

Error fault_at(std::size_t column, std::string_view what) {
  return Error{ErrorKind::InvalidArgument, fmt::format("filter, column {}: {}", column, what)};
}

bool is_ordering(Sign sign) {
  return sign == Sign::Less || sign == Sign::LessOrEqual || sign == Sign::Greater ||
         sign == Sign::GreaterOrEqual;
}

// As the grammar wants it.
std::string field_text(const std::string& name) {
  return std::all_of(name.begin(), name.end(), is_word_byte) ? name : fmt::format("`{}`", name);
}

bool is_whole(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  return number.find_first_not_of("0123456789") == std::string_view::npos;
}

// Above 2^53 neighbours are one double, and ids are such numbers: of two whole ones that are equal
// as doubles the digits decide. number_of_text has refused zeros in front.
int order_of(const FieldScalar& scalar, std::string_view text, double number) {
  constexpr double kExactMost = 9007199254740992.0;  // 2^53
  if (*scalar.number != number) return *scalar.number < number ? -1 : 1;
  if (std::abs(number) < kExactMost || !is_whole(scalar.text) || !is_whole(text)) return 0;
  const int order = scalar.text.size() != text.size() ? (scalar.text.size() < text.size() ? -1 : 1)
                                                      : scalar.text.compare(text);
  return number < 0 ? -order : order;
}

bool is_ordered(Sign sign, int order) {
  switch (sign) {
    case Sign::Less:
      return order < 0;
    case Sign::LessOrEqual:
      return order <= 0;
    case Sign::Greater:
      return order > 0;
    case Sign::GreaterOrEqual:
      return order >= 0;
    default:
      return order == 0;
  }
}

}  // namespace

// What a field is compared with.
struct FieldFilter::Value {
  std::string text;
  std::optional<double> number = {};  // of a word that is one
  std::string as_written = {};        // with its quotes
  std::size_t column = 0;             // where it stands, from 1

  bool fits(Sign sign, const FieldScalar& scalar) const {
    if (sign == Sign::Holds) return scalar.text.find(text) != std::string::npos;
    if (!number) return is_ordered(sign, scalar.text.compare(text));
    if (!scalar.number) return false;
    return is_ordered(sign, order_of(scalar, text, *number));
  }
};

struct FieldFilter::Node {
  Kind kind = Kind::Compare;
  std::vector<Node> parts = {};    // of Any, All, Not
  std::size_t number = 0;          // of Compare, and all below: which comparison it is
  std::string field = {};          //
  Sign sign = Sign::Is;            //
  std::vector<Value> values = {};  // one of them must fit
  std::string_view sign_text = {};

  bool fits(const FieldValue& value) const {
    if (sign == Sign::Is) return !value.empty();
    return std::any_of(value.begin(), value.end(), [this](const FieldScalar& scalar) {
      return std::any_of(values.begin(), values.end(),
                         [&](const Value& one) { return one.fits(sign, scalar); });
    });
  }

  Status check(const FieldTable& table) const {
    for (const auto& part : parts) MUSTER_TRY(part.check(table));
    const auto* column = kind == Kind::Compare && is_ordering(sign) ? table.find(field) : nullptr;
    if (column == nullptr || !column->is_number()) return Done{};
    for (const auto& value : values) {
      if (value.number) continue;
      // The first value is "nothing".
      const auto example = number_of_text(value.text) ? value.text : column->values[1].front().text;
      return fault_at(value.column,
                      fmt::format("{0} is a number, and {1} is a text: write a number without "
                                  "quotes, as {2} {3} {4}",
                                  field, value.as_written, field_text(field), sign_text, example));
    }
    return Done{};
  }
};

/// Recursive descent, a function for each line of the grammar.
class FieldFilter::Parser {
 public:
  Parser(std::string_view text, std::span<const std::string> names) : text_(text), names_(names) {}

  Result<Node> parse() {
    if (text_.size() > kSizeMost) {
      return fault(fmt::format("longer than {} bytes", with_thousands(kSizeMost)));
    }
    if (const auto bad = invalid_utf8_at(text_)) {
      at_ = *bad;
      return fault("invalid UTF-8");
    }
    auto root = MUSTER_TRY(condition());
    if (!is_at_end()) return fault(fmt::format("and, or or the end is expected before {}", rest()));
    return root;
  }

 private:
  Result<Node> condition() {
    if (++levels_ > kLevelsMost) return fault(fmt::format("nested deeper than {}", kLevelsMost));
    auto node = MUSTER_TRY(chain(Kind::Any, "or", "||", [this] { return all(); }));
    --levels_;
    return node;
  }

  Result<Node> all() {
    return chain(Kind::All, "and", "&&", [this] { return one(); });
  }

  template <typename Next>
  Result<Node> chain(Kind kind, std::string_view word, std::string_view sign, const Next& next) {
    auto first = MUSTER_TRY(next());
    std::vector<Node> parts;
    parts.push_back(std::move(first));
    while (take_keyword(word) || take(sign)) parts.push_back(MUSTER_TRY(next()));
    if (parts.size() == 1) return std::move(parts.front());
    return Node{.kind = kind, .parts = std::move(parts)};
  }

  Result<Node> one() {
    if (take_keyword("not") || (!is_next("!=") && take("!"))) {
      if (++levels_ > kLevelsMost) return fault(fmt::format("nested deeper than {}", kLevelsMost));
      auto part = MUSTER_TRY(one());
      --levels_;
      return negated(std::move(part));
    }
    if (!take("(")) return comparison();
    auto inner = MUSTER_TRY(condition());
    if (!take(")")) return fault(fmt::format("a ) is missing before {}", rest()));
    return inner;
  }

  Result<Node> comparison() {
    Node node{.kind = Kind::Compare, .number = count_};
    if (++count_ > kComparisonsMost) {
      return fault(fmt::format("more than {} comparisons", kComparisonsMost));
    }
    node.field = MUSTER_TRY(field());
    const auto before = at_;
    const bool is_not = take_keyword("not");
    if (take_keyword("in")) {
      MUSTER_TRY(values_in_parentheses(node));
      return is_not ? negated(std::move(node)) : std::move(node);
    }
    at_ = before;
    if (take("!=")) {
      node.sign = Sign::Equal;
      MUSTER_TRY(value(node));
      return negated(std::move(node));
    }
    static constexpr std::pair<std::string_view, Sign> kSigns[] = {
        {"<=", Sign::LessOrEqual}, {">=", Sign::GreaterOrEqual}, {"==", Sign::Equal},
        {"<", Sign::Less},         {">", Sign::Greater},         {"=", Sign::Equal},
        {"~", Sign::Holds}};
    for (const auto& [sign, meaning] : kSigns) {
      if (!take(sign)) continue;
      node.sign = meaning;
      node.sign_text = sign;
      MUSTER_TRY(value(node));
      break;
    }
    return node;
  }

  Result<std::string> field() {
    skip_spaces();
    const auto begin = at_;
    std::string name;
    if (take("`")) {
      const auto end = text_.find('`', at_);
      if (end == std::string_view::npos) return fault("a ` is missing at the end of the name");
      name = text_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      name = word();
    }
    if (name.empty()) {
      at_ = begin;
      return fault(fmt::format("a field is expected before {}", rest()));
    }
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return name;
    at_ = begin;
    return unknown_field(name);
  }

  Error unknown_field(const std::string& name) const {
    if (names_.empty()) {
      return fault(fmt::format(
          "no field \"{}\": none is kept; --keep FIELD of muster embed keeps one", name));
    }
    if (const auto nearest = nearest_name(name, names_)) {
      return fault(fmt::format("no field \"{}\"; nearest is \"{}\"", name, *nearest));
    }
    constexpr std::size_t kShown = 8;  // a message stays a sentence
    const auto shown = names_.first(std::min(names_.size(), kShown));
    return fault(fmt::format("no field \"{}\"; there is \"{}\"{}", name, fmt::join(shown, "\", \""),
                             shown.size() < names_.size() ? ", …" : ""));
  }

  Status values_in_parentheses(Node& node) {
    node.sign = Sign::Equal;
    if (!take("(")) return fault(fmt::format("a ( is expected before {}", rest()));
    do {
      MUSTER_TRY(value(node));
    } while (take(","));
    if (!take(")")) return fault(fmt::format("a , or ) is missing before {}", rest()));
    return Done{};
  }

  Status value(Node& node) {
    skip_spaces();
    if (++value_count_ > kValuesMost) return fault(fmt::format("more than {} values", kValuesMost));
    const auto begin = at_;
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote == '"' || quote == '\'') {
      auto text = MUSTER_TRY(quoted(quote));
      node.values.push_back({.text = std::move(text)});
      note_place(node.values.back(), begin);
      return Done{};
    }
    const auto found = word();
    if (found.empty()) return fault(fmt::format("a value is expected before {}", rest()));
    // Only a word is a number: "2020" in quotes is a text.
    const auto number = node.sign == Sign::Holds ? std::nullopt : number_of_text(found);
    node.values.push_back({.text = std::string(found), .number = number});
    note_place(node.values.back(), begin);
    return Done{};
  }

  // What check() needs to name it.
  void note_place(Value& value, std::size_t begin) const {
    value.as_written = text_.substr(begin, at_ - begin);
    value.column = column_of(begin);
  }

  std::size_t column_of(std::size_t at) const { return character_count(text_.substr(0, at)) + 1; }

  Result<std::string> quoted(char quote) {
    std::string text;
    const auto begin = at_++;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_];
    }
    if (at_ == text_.size()) {
      at_ = begin;
      return fault(fmt::format("a {} is missing at the end of the text", quote));
    }
    ++at_;
    return text;
  }

  static Node negated(Node part) {
    Node node{.kind = Kind::Not};
    node.parts.push_back(std::move(part));
    return node;
  }

  std::string_view word() {
    const auto begin = at_;
    while (at_ < text_.size() && is_word_byte(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool take_keyword(std::string_view keyword) {
    skip_spaces();
    const auto before = at_;
    if (is_keyword(word(), keyword)) return true;
    at_ = before;
    return false;
  }

  bool is_next(std::string_view sign) {
    skip_spaces();
    return text_.substr(at_).starts_with(sign);
  }

  bool take(std::string_view sign) {
    if (!is_next(sign)) return false;
    at_ += sign.size();
    return true;
  }

  void skip_spaces() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }

  bool is_at_end() {
    skip_spaces();
    return at_ == text_.size();
  }

  // The next characters, for a message: whole ones.
  std::string rest() const {
    constexpr std::size_t kShown = 12;
    auto end = std::min(text_.size(), at_ + kShown);
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    return at_ < text_.size() ? std::string(text_.substr(at_, end - at_)) : "the end";
  }

  Error fault(std::string_view what) const { return fault_at(column_of(at_), what); }

  std::string_view text_;
  std::span<const std::string> names_;
  std::size_t at_ = 0;
  int levels_ = 0;
  std::size_t count_ = 0;        // comparisons so far
  std::size_t value_count_ = 0;  // of all of them
};

Result<std::shared_ptr<const FieldFilter>> FieldFilter::parse(std::string_view text,
                                                              std::span<const std::string> names) {
  auto root = MUSTER_TRY(Parser(text, names).parse());
  auto filter = std::make_shared<FieldFilter>();
  filter->root_ = std::make_shared<const Node>(std::move(root));
  return std::shared_ptr<const FieldFilter>(std::move(filter));
}

Status FieldFilter::check(const FieldTable& table) const { return root_->check(table); }

RowFilter::RowFilter(std::shared_ptr<const FieldFilter> filter, const FieldTable& table)
    : RowFilter(begin(std::move(filter), table)) {
  while (!bind(std::numeric_limits<std::uint64_t>::max())) continue;
}

RowFilter RowFilter::begin(std::shared_ptr<const FieldFilter> filter, const FieldTable& table) {
  RowFilter begun;
  begun.filter_ = std::move(filter);
  begun.add_leaves(*begun.filter_->root_, table);
  return begun;
}

void RowFilter::add_leaves(const FieldFilter::Node& node, const FieldTable& table) {
  for (const auto& part : node.parts) add_leaves(part, table);
  if (node.kind != Kind::Compare) return;
  leaves_.resize(std::max(leaves_.size(), node.number + 1));
  auto& leaf = leaves_[node.number];
  leaf.node = &node;
  leaf.column = table.find(node.field);
}

bool RowFilter::bind(std::uint64_t pair_count) {
  for (; next_leaf_ < leaves_.size(); ++next_leaf_) {
    auto& leaf = leaves_[next_leaf_];
    if (leaf.column == nullptr) continue;
    const auto& values = leaf.column->values;
    leaf.fits.reserve(values.size());
    while (leaf.fits.size() < values.size()) {
      if (pair_count == 0) return false;
      const auto& value = values[leaf.fits.size()];
      leaf.fits.push_back(leaf.node->fits(value));
      const std::uint64_t pairs = value.size() * leaf.node->values.size();
      pair_count -= std::min(pair_count, std::max<std::uint64_t>(pairs, 1));
    }
  }
  return true;
}

bool RowFilter::takes(std::uint64_t row) const { return takes(*filter_->root_, row); }

bool RowFilter::takes(const FieldFilter::Node& node, std::uint64_t row) const {
  const auto takes_it = [&](const auto& part) { return takes(part, row); };
  switch (node.kind) {
    case Kind::Any:
      return std::any_of(node.parts.begin(), node.parts.end(), takes_it);
    case Kind::All:
      return std::all_of(node.parts.begin(), node.parts.end(), takes_it);
    case Kind::Not:
      return !takes(node.parts.front(), row);
    case Kind::Compare:
      break;
  }
  const auto& leaf = leaves_[node.number];
  return leaf.column != nullptr && leaf.fits[leaf.column->of_row[row]];
}

}  // namespace muster
