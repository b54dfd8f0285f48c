#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "dataset/index_map.h"
#include "dataset/memory_source.h"

namespace {

std::string shape_of(const muster::IndexMap& map) {
  std::string shape;
  for (const auto& line : map.lines) {
    shape += std::to_string(line.offset) + "+" + std::to_string(line.size) + " ";
  }
  for (const auto& column : map.fields.columns()) {
    MUSTER_CHECK(column.of_row.size() == map.lines.size());
    shape += column.name + "=";
    for (const auto place : column.of_row) {
      MUSTER_CHECK(place < column.values.size());
      shape += std::to_string(place) + ",";
    }
  }
  return shape;
}

}  // namespace

// An index from outside: every row has a line in it, and where a read ends does not matter.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content(reinterpret_cast<const char*>(data), size);
  std::string first;
  for (const std::size_t read_size : {size + 1, std::size_t{1}, std::size_t{5}}) {
    const auto map =
        muster::map_index(std::make_unique<muster::MemorySource>(content, read_size), "fuzz");
    const std::string shape = map ? shape_of(*map) : map.error().message;
    if (first.empty()) first = shape;
    MUSTER_CHECK(shape == first);
    for (std::size_t row = 0; map && row < map->lines.size(); ++row) {
      const auto [offset, length] = map->lines[row];
      MUSTER_CHECK(offset + length <= size);
      MUSTER_CHECK(muster::row_of_index_line(content.substr(offset, length)) == row);
      std::string line = content.substr(offset, length);
      line.reserve(line.size() + 64);
      static_cast<void>(muster::parse_index_line(line));
    }
  }
  return 0;
}
