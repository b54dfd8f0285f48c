#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "jobs/field_filter.h"

// Any text is a filter or an Error that can be shown; the opposite of a filter takes the other
// rows.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto table = [] {
    muster::FieldTable rows;
    for (const auto* word : {"de", "2020", "-1.5", "black dog", "true"}) {
      rows.add_row();
      static_cast<void>(rows.set("a", {{word, muster::number_of_text(word)}}));
      static_cast<void>(rows.set("number", {{"9", 9}}));
      rows.add_row();
      static_cast<void>(rows.set("b c", {{word, {}}, {"in", {}}}));
    }
    return rows;
  }();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> names{"a", "b c", "never met", "number"};
  const auto filter = muster::FieldFilter::parse(text, names);
  if (!filter) {
    MUSTER_CHECK(muster::invalid_utf8_at(text) || !muster::invalid_utf8_at(filter.error().message));
    return 0;
  }
  if (const auto checked = (*filter)->check(table); !checked) {
    MUSTER_CHECK(!muster::invalid_utf8_at(checked.error().message));
  }
  const muster::RowFilter taken(*filter, table);
  const auto opposite = muster::FieldFilter::parse("not (" + std::string(text) + ")", names);
  for (std::uint64_t row = 0; row < table.row_count(); ++row) {
    const bool is_taken = taken.takes(row);
    // It may be one level, or a few bytes, over the bound.
    if (opposite) MUSTER_CHECK(muster::RowFilter(*opposite, table).takes(row) != is_taken);
  }
  return 0;
}
