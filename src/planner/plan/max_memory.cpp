// Two grammars of memory sizes. muster's own refuses what accelerate would take in another sense
// than the one meant: a small final b counts bits there, so "10gb" is an eighth of 10 GB.
// accelerate's own is followed to the letter, with Python's float(), its underscores and its
// spaces, because its cases are to be answered as it answers them. Budgets are counted in bits and
// bounded, so that their sums stay within an int64.

#include "planner/plan/max_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/text.h"

namespace muster {
namespace {

constexpr double kBytesMax = 9.2e18;  // below 2^63
constexpr std::int64_t kBudgetBitsMax = std::numeric_limits<std::int64_t>::max() - 7;

struct Unit {
  std::string_view name;
  double bytes;
  bool is_binary;
};

// In the order in which accelerate tries them.
constexpr std::array kUnits = {
    Unit{"GiB", 1073741824.0, true}, Unit{"MiB", 1048576.0, true}, Unit{"KiB", 1024.0, true},
    Unit{"GB", 1e9, false},          Unit{"MB", 1e6, false},       Unit{"KB", 1e3, false},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool ends_with_any_case(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         std::equal(suffix.rbegin(), suffix.rend(), text.rbegin(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

const Unit* unit_of(std::string_view text) {
  for (const auto& unit : kUnits) {
    if (ends_with_any_case(text, unit.name)) return &unit;
  }
  return nullptr;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// What Python's float() accepts, infinities and NaN apart: spaces around, a sign, digits that may
/// have single underscores between them, an exponent.
std::optional<double> python_float(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\r\f\v";
  const auto first = text.find_first_not_of(spaces);
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(spaces) - first + 1);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
        return std::nullopt;
      }
      continue;
    }
    digits += text[i];
  }
  const bool has_plus = digits[0] == '+';
  const char* begin = digits.data() + (has_plus ? 1 : 0);
  const char* end = digits.data() + digits.size();
  if (has_plus && begin != end && *begin == '-') return std::nullopt;
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

Error no_size(std::string_view text) {
  return invalid_error(fmt::format(
      "not a memory size: '{}' (sizes are 20GB, 1.5GiB, 800MB or a number of bytes)", text));
}

/// The number before a unit that accelerate's grammar does not have, for the form to use instead.
std::optional<Error> refuse_tera(std::string_view text) {
  const bool is_binary = ends_with_any_case(text, "TiB");
  if (!is_binary && !ends_with_any_case(text, "TB")) return std::nullopt;
  const auto number = python_float(text.substr(0, text.size() - (is_binary ? 3 : 2)));
  if (!number || *number < 0) return no_size(text);
  return invalid_error(
      fmt::format("memory sizes have no unit above GB and GiB: for '{}' write {}{}", text,
                  *number * (is_binary ? 1024 : 1000), is_binary ? "GiB" : "GB"));
}

Result<std::uint64_t> whole_bytes(double bytes, std::string_view text) {
  if (bytes >= kBytesMax) return invalid_error(fmt::format("memory size is too large: '{}'", text));
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

Result<std::uint64_t> parse_memory_size(std::string_view text) {
  const auto trimmed = trim(text);
  if (!trimmed.empty() && trimmed.front() == '-') {
    const auto positive = parse_memory_size(trimmed.substr(1));
    if (!positive) return no_size(text);
    return invalid_error(fmt::format("a memory size cannot be negative: for '{}' write {}", trimmed,
                                     trimmed.substr(1)));
  }
  if (auto refusal = refuse_tera(trimmed)) return *std::move(refusal);
  const Unit* unit = unit_of(trimmed);
  if (unit == nullptr) {
    std::uint64_t bytes = 0;
    const char* end = trimmed.data() + trimmed.size();
    const auto [stop, error] = std::from_chars(trimmed.data(), end, bytes);
    if (trimmed.empty() || error != std::errc() || stop != end) return no_size(text);
    return whole_bytes(static_cast<double>(bytes), text).has_value() ? Result<std::uint64_t>(bytes)
                                                                     : no_size(text);
  }
  const auto number_text = trimmed.substr(0, trimmed.size() - unit->name.size());
  const auto number = python_float(number_text);
  if (!number) return no_size(text);
  if (!unit->is_binary && trimmed.back() == 'b') {
    return invalid_error(
        fmt::format("'{}' is ambiguous, accelerate reads its small b as bits: write {}{}", trimmed,
                    trim(number_text), unit->name));
  }
  return whole_bytes(std::trunc(*number * unit->bytes), text);
}

Result<std::uint64_t> parse_accelerate_size(std::string_view text) {
  const auto refusal = [&] {
    return invalid_error(fmt::format(
        "not in accelerate's grammar: '{}' (a whole number of bytes, or a text like '5.0GB')",
        text));
  };
  const Unit* unit = unit_of(text);
  if (unit == nullptr) return refusal();
  const auto number = python_float(text.substr(0, text.size() - unit->name.size()));
  if (!number) return refusal();
  const double bytes = std::trunc(*number * unit->bytes);
  if (bytes < 0) return refusal();
  const auto whole = MUSTER_TRY(whole_bytes(bytes, text));
  return !unit->is_binary && text.back() == 'b' ? whole / 8 : whole;
}

Result<std::vector<MemoryLimit>> parse_memory_limits(std::string_view text) {
  std::vector<MemoryLimit> limits;
  if (trim(text).empty()) return limits;
  std::set<std::string_view> names;
  for (const auto& piece : split(text, ',')) {
    const auto equals = piece.find('=');
    if (equals == std::string::npos) {
      return invalid_error(
          fmt::format("a memory limit is DEVICE=SIZE, as in cuda:0=20GB: '{}'", piece));
    }
    MemoryLimit limit;
    limit.device = trim(std::string_view(piece).substr(0, equals));
    if (limit.device.empty()) {
      return invalid_error(
          fmt::format("a memory limit names no device, as in cuda:0=20GB: '{}'", piece));
    }
    limit.bytes = MUSTER_TRY(parse_memory_size(std::string_view(piece).substr(equals + 1)));
    limits.push_back(std::move(limit));
  }
  for (const auto& limit : limits) {
    if (!names.insert(limit.device).second) {
      return invalid_error(fmt::format("a device has two memory limits: {}", limit.device));
    }
  }
  return limits;
}

std::string Place::name() const {
  switch (kind) {
    case PlaceKind::Gpu:
      return std::to_string(index);
    case PlaceKind::Mps:
      return "mps";
    case PlaceKind::Cpu:
      return "cpu";
    case PlaceKind::Disk:
      return "disk";
  }
  return "?";
}

Result<Place> parse_place(std::string_view name) {
  if (name == "mps") return Place{PlaceKind::Mps, 0};
  if (name == "cpu") return Place{PlaceKind::Cpu, 0};
  if (name == "disk") return Place{PlaceKind::Disk, 0};
  Place place;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, place.index);
  if (name.empty() || error != std::errc() || stop != end) {
    return invalid_error(
        fmt::format("not a place of accelerate's: '{}' (a GPU's number, mps, cpu or disk)", name));
  }
  return place;
}

Result<PlaceBudgets> ordered_budgets(PlaceBudgets budgets) {
  std::sort(budgets.begin(), budgets.end(),
            [](const PlaceBudget& a, const PlaceBudget& b) { return a.place < b.place; });
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    if (i > 0 && budgets[i].place == budgets[i - 1].place) {
      return invalid_error(fmt::format("a place has two budgets: {}", budgets[i].place.name()));
    }
    if (budgets[i].bits > kBudgetBitsMax) {
      return Error{ErrorKind::ResourceExhausted,
                   fmt::format("a budget is above 2^60 bytes: {}", budgets[i].place.name())};
    }
  }
  return budgets;
}

}  // namespace muster
