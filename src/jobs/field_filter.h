#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/field_table.h"

namespace muster {

/// A condition on the kept fields of a row: `lang=de and (year>=2020 or not tag~"part")`.
///
///   condition  = all { ("or" | "||") all }
///   all        = one { ("and" | "&&") one }
///   one        = ("not" | "!") one | "(" condition ")" | field [ comparison ]
///   comparison = ("=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "~") value
///              | ["not"] "in" "(" value { "," value } ")"
///   field      = word | "`" name "`"
///   value      = word | '"' text '"' | "'" text "'"
///   word       = letters, digits, any character above U+007F and _ . - + : / @ # % * $
///
/// and, or, not and in may be written in capitals; behind a sign any word is a value. In a quoted
/// text a backslash takes the next character as it is.
///
/// A word that is a number is compared as a number with values that are numbers or texts that read
/// as one; any other value is compared as text, byte by byte, and so are numbers with it. `~` is
/// true of a value that holds the text. A field that is a list is compared element by element, and
/// one that fits is enough. A field alone asks whether a row has it. What a row does not have fits
/// no comparison; `!=` and `not in` are the opposites of `=` and `in`, so they are true of it.
///
/// Threads: immutable. Bounded: 4,096 bytes, 64 levels, 64 comparisons, 256 values.
class FieldFilter {
 public:
  /// names: the fields that there are.
  ///
  /// Errors: InvalidArgument with the column (characters, from 1), and the nearest field for an
  /// unknown one.
  static Result<std::shared_ptr<const FieldFilter>> parse(std::string_view text,
                                                          std::span<const std::string> names);

  /// Whether the comparisons suit what the fields hold: by <, <=, > and >= a field that is a number
  /// in every row is compared with numbers alone; the order of bytes has "9" after "10".
  ///
  /// Errors: InvalidArgument with the column, the field and the right form.
  Status check(const FieldTable& table) const;

 private:
  friend class RowFilter;
  class Parser;
  struct Value;
  struct Node;

  std::shared_ptr<const Node> root_;
};

/// A filter and the rows that it is asked about: every comparison is worked out once for each
/// different value of its field.
///
/// Threads: immutable once it is bound.
class RowFilter {
 public:
  /// All at once. table: outlives it. Cost: comparisons x different values.
  RowFilter(std::shared_ptr<const FieldFilter> filter, const FieldTable& table);

  /// In steps, for a thread that has more to do: `takes` only after `bind` has said true.
  static RowFilter begin(std::shared_ptr<const FieldFilter> filter, const FieldTable& table);

  /// Compares about so many pairs of values. True: that was all.
  bool bind(std::uint64_t pair_count);

  /// row: below table.row_count().
  bool takes(std::uint64_t row) const;

 private:
  // One comparison.
  struct Leaf {
    const FieldFilter::Node* node = nullptr;
    const FieldColumn* column = nullptr;  // nullptr: no row has the field
    std::vector<bool> fits;               // by place in column->values, as far as it is bound
  };
  RowFilter() = default;
  void add_leaves(const FieldFilter::Node& node, const FieldTable& table);
  bool takes(const FieldFilter::Node& node, std::uint64_t row) const;

  std::shared_ptr<const FieldFilter> filter_;
  std::vector<Leaf> leaves_;   // by the number that the parser gave a comparison
  std::size_t next_leaf_ = 0;  // those before it are bound
};

}  // namespace muster
