#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/canvas.h"
#include "terminal/table.h"
#include "views/top_data.h"
#include "views/top_state.h"

namespace muster {

/// What a cell of a device's row is made from.
struct TopRow {
  const DeviceStatus& status;
  const Trend& trend;
  CharacterSet characters;
};

struct TopCell {
  std::string text;
  Style style;
};

/// A column of the devices' rows.
struct TopColumn {
  std::string_view title;
  Align align = Align::Right;
  std::uint8_t rank = 0;  // the lowest stay longest where the screen is narrow
  std::size_t width = 4;
  std::size_t width_max = 4;  // what is left over goes to columns that can use it
  std::optional<SortKey> sort;
  TopCell (*cell)(const TopRow& row, std::size_t width) = nullptr;
  bool is_of_gpus = false;  // no CPU has any of it
};

/// A column on the screen.
struct PlacedColumn {
  TopColumn column = {};
  std::size_t begin = 0;
  std::size_t width = 0;
};

/// The cell of names, which are cut between words: their column is as wide as what it holds.
TopCell name_cell(const TopRow& row, std::size_t width);

/// The columns of the page of devices, and of the page of energy.
std::span<const TopColumn> device_columns();
std::span<const TopColumn> energy_columns();

/// Those that fit beside each other, a space between, in the order of the table: the lowest ranks,
/// then widened from the left until the line is full. `rows`: all that will be shown; a column is
/// as wide as what they have in it needs, and without a GPU those of GPUs alone are left out.
std::vector<PlacedColumn> place_columns(std::span<const TopColumn> columns,
                                        std::span<const TopRow> rows, std::size_t width);

}  // namespace muster
