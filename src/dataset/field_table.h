#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace muster {

/// One scalar of a kept field, as a comparison sees it.
struct FieldScalar {
  std::string text;              // a text itself; a number, true or false as JSON writes it
  std::optional<double> number;  // of a number, and of a text that reads as one
};

/// What a record has under one name: one scalar, or those of a list. Empty: nothing, or null.
using FieldValue = std::vector<FieldScalar>;

/// One kept field of all rows. Equal values are stored once, so that a condition is worked out for
/// each different value and not for each row.
struct FieldColumn {
  std::string name;
  std::vector<FieldValue> values = {FieldValue{}};  // different ones; the first is "nothing"
  std::vector<std::uint32_t> of_row = {};           // by row: the place in `values`
  bool has_numbers = false;                         // a scalar that has one
  bool has_others = false;                          // a scalar that has none

  bool is_number() const { return has_numbers && !has_others; }
};

/// The fields that an index keeps, by column.
///
/// Threads: immutable after `finish`.
class FieldTable {
 public:
  /// Appends a row that has no field yet.
  void add_row();

  /// Gives the last row a field; of a name that comes twice the last value counts.
  ///
  /// Errors: ResourceExhausted for more than 1,024 names.
  Status set(std::string_view name, FieldValue value);

  /// After the last `set`: gives back the memory that only `set` needs.
  void finish();

  std::uint64_t row_count() const { return row_count_; }

  /// In the order in which they were first met.
  const std::vector<FieldColumn>& columns() const { return columns_; }

  /// nullptr when no row has a field of this name.
  const FieldColumn* find(std::string_view name) const;

  std::vector<std::string> names() const;

 private:
  std::vector<FieldColumn> columns_;
  std::map<std::string, std::size_t, std::less<>> places_;  // of columns_ by name
  // By column, until `finish`: the places of its values by what they hold.
  std::vector<std::unordered_map<std::string, std::uint32_t>> known_;
  std::uint64_t row_count_ = 0;
};

/// The number that a text reads as in full, as JSON writes numbers; nullopt for anything else.
std::optional<double> number_of_text(std::string_view text);

}  // namespace muster
