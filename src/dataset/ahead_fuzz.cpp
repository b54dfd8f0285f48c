#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "dataset/ahead_layout.h"
#include "dataset/memory_source.h"

namespace {

std::string shape_of(const muster::Result<std::optional<muster::AheadContent>>& content) {
  if (!content) return content.error().message;
  if (!*content) return "none";
  std::string shape = (*content)->run + " " + std::to_string((*content)->dim) + " " +
                      std::to_string((*content)->slot_count);
  for (const auto& entry : (*content)->entries) {
    shape += " " + std::to_string(entry.record) + "@" + std::to_string(entry.slot);
  }
  return shape;
}

}  // namespace

// A file of rows ahead from outside: what it is said to hold lies in it, and where a read ends does
// not matter.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  std::string first;
  for (const std::size_t read_size : {size + 1, std::size_t{1}, std::size_t{5}}) {
    muster::MemorySource source(file, read_size);
    const auto content = muster::read_ahead(source, "fuzz");
    const auto shape = shape_of(content);
    if (first.empty()) first = shape;
    MUSTER_CHECK(shape == first);
    if (!content || !*content) continue;
    const auto slot_size = muster::ahead_slot_size((*content)->dim);
    MUSTER_CHECK(muster::kAheadHeaderSize + (*content)->slot_count * slot_size <= size);
    for (const auto& entry : (*content)->entries) {
      MUSTER_CHECK(entry.slot < (*content)->slot_count);
      const auto slot = std::string_view(file).substr(
          muster::kAheadHeaderSize + entry.slot * slot_size, slot_size);
      const auto row = muster::decode_ahead_row(slot, (*content)->run);
      MUSTER_CHECK(row && row->record == entry.record && row->text_hash == entry.text_hash);
      MUSTER_CHECK(row->values.size() == (*content)->dim);
      std::string again;
      muster::encode_ahead_row(*row, row->values, (*content)->run, again);
      MUSTER_CHECK(again.size() == slot.size());
    }
  }
  return 0;
}
