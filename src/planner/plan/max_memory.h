#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster {

/// What one device may hold, as asked for with `--max-memory cuda:0=20GB,cpu=64GiB`.
struct MemoryLimit {
  std::string device;  // as written: "cuda:0", "cpu", "disk"
  std::uint64_t bytes = 0;
};

/// Reads a comma-separated list of NAME=SIZE. Whether a device of that name exists is the caller's
/// question. An empty text is an empty list.
///
/// Errors: InvalidArgument (no '=', no name, a name twice, a size that `parse_memory_size`
/// refuses).
Result<std::vector<MemoryLimit>> parse_memory_limits(std::string_view text);

/// Bytes of "20GB", "1.5GiB", "800 MB" or a whole number of bytes.
///
/// Errors: InvalidArgument, with the nearest right form: what accelerate reads as bits ("10gb"), a
/// negative size, a unit that its grammar lacks ("2TB"), anything that is no size.
Result<std::uint64_t> parse_memory_size(std::string_view text);

/// The same as accelerate reads a text: GiB, MiB and KiB in any case; GB, MB and KB, which with a
/// small final b mean bits; the number as Python's float() reads it, the result cut to a whole.
///
/// Source: accelerate 1.15.0, utils/modeling.py, convert_file_size_to_int. Errors: InvalidArgument.
Result<std::uint64_t> parse_accelerate_size(std::string_view text);

/// Where accelerate can put a module: a GPU by number, Apple's GPU, the host, or files.
enum class PlaceKind : std::uint8_t { Gpu, Mps, Cpu, Disk };

struct Place {
  PlaceKind kind = PlaceKind::Gpu;
  std::uint32_t index = 0;  // Gpu only

  std::string name() const;  // "0", "mps", "cpu", "disk"
  bool is_accelerator() const { return kind == PlaceKind::Gpu || kind == PlaceKind::Mps; }
  friend bool operator==(const Place&, const Place&) = default;
  friend bool operator<(const Place& a, const Place& b) {
    return std::pair(a.kind, a.index) < std::pair(b.kind, b.index);
  }
};

/// "0", "mps", "cpu" or "disk". Errors: InvalidArgument.
Result<Place> parse_place(std::string_view name);

/// A place's budget in bits, because accelerate counts a bool as 1/8 byte and so can end with a
/// budget that is no whole number of bytes.
struct PlaceBudget {
  Place place;
  std::int64_t bits = 0;
};

/// Budgets in accelerate's order: GPUs ascending, mps, cpu, disk.
using PlaceBudgets = std::vector<PlaceBudget>;

/// Puts `budgets` into that order. Errors: InvalidArgument (a place twice), ResourceExhausted (more
/// than 2^60 bytes).
Result<PlaceBudgets> ordered_budgets(PlaceBudgets budgets);

}  // namespace muster
