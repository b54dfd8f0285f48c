#include <string_view>

#include "base/check.h"
#include "sweep/point_store.h"
#include "sweep/record_table.h"

// Any bytes as a table of an earlier run, and as a point's file. What can be read is written as
// something that reads as the same.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto table = muster::RecordTable::read(text, "x.csv")) {
    const auto again = muster::RecordTable::read(table->text(), "x.csv");
    MUSTER_CHECK(again && again->text() == table->text());
  }
  auto table = muster::RecordTable();
  if (const auto kept = muster::read_kept_point(text, "x.json")) {
    table.put(kept->record);
    MUSTER_CHECK(table.row_count() == 1);
  }
  return 0;
}
