// A value is checked where it stands and brought into one form, so that two spellings of it (1e0
// and 1, float32 and fp32) are the same point of a sweep. A list means one of two things: of
// device_ids it is a set of devices; of a key that may be swept it is several points.
#include "sweep/sweep_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/text.h"

namespace muster {
namespace {

using Kind = ConfigNode::Kind;

constexpr std::size_t kTextSizeMost = 4'096;
constexpr std::size_t kSweepMost = 1'000;  // values of one key

Error wrong(std::string_view place, std::string_view what) {
  return {ErrorKind::InvalidArgument, fmt::format("{} {}", place, what)};
}

std::string keys_that_sweep() {
  std::vector<std::string_view> names;
  for (const auto& row : sweep_keys()) {
    if (row.may_sweep) names.push_back(row.column);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

template <typename Number>
bool read_whole(std::string_view text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

Result<std::string> count_text(const SweepKeyRow& row, const std::string& text,
                               std::string_view place) {
  std::uint64_t count = 0;
  const bool is_whole = read_whole(text, count);
  const auto value = static_cast<double>(count);
  if (!is_whole || value < row.least || value > row.most) {
    return wrong(place, fmt::format("must be a whole number from {:.0f} to {:.0f}: \"{}\"",
                                    row.least, row.most, text));
  }
  return std::to_string(count);
}

Result<std::string> number_text(const SweepKeyRow& row, const std::string& text,
                                std::string_view place) {
  double number = 0;
  // "nan" is read as a number, too, and lies in no range.
  const bool is_within = read_whole(text, number) && number >= row.least && number <= row.most;
  if (!is_within) {
    return wrong(place,
                 fmt::format("must be a number from {} to {}: \"{}\"", row.least, row.most, text));
  }
  return fmt::format("{}", number == 0 ? 0.0 : number);  // -0 is 0
}

Result<std::string> word_text(const SweepKeyRow& row, const std::string& text,
                              std::string_view place) {
  std::vector<std::string> words;
  for (const auto& word : row.words) {
    if (word.theirs == text) return std::string(word.ours);
    words.emplace_back(word.theirs);
  }
  const auto nearest = nearest_name(text, words);
  return wrong(place, fmt::format("must be one of {}: \"{}\"{}", fmt::join(words, ", "), text,
                                  nearest ? fmt::format("; did you mean {}?", *nearest) : ""));
}

Result<std::string> plain_text(const SweepKeyRow& row, const ConfigNode& node,
                               std::string_view place) {
  const auto& text = node.text;
  switch (row.kind) {
    case SweepValueKind::Count:
      return count_text(row, text, place);
    case SweepValueKind::Number:
      return number_text(row, text, place);
    case SweepValueKind::Switch:
      if (text == "true" || text == "True") return std::string("true");
      if (text == "false" || text == "False") return std::string("false");
      return wrong(place, fmt::format("must be true or false: \"{}\"", text));
    case SweepValueKind::Choice:
      return word_text(row, text, place);
    default:
      break;
  }
  const bool is_printable = std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (trim(text).empty() || text.size() > kTextSizeMost || !is_printable) {
    return wrong(place, "must be a line of text");
  }
  return text;
}

// What a list of a list, or of anything but plain values, is refused by.
Result<std::string> single_text(const SweepKeyRow& row, const ConfigNode& node,
                                std::string_view place) {
  if (node.kind == Kind::Plain) return plain_text(row, node, place);
  if (node.kind == Kind::Nothing) {
    return wrong(place, "has no value; leave the key out for its default");
  }
  if (node.kind == Kind::List && !row.may_sweep) {
    return wrong(place,
                 fmt::format("takes one value; a list is a sweep, of {}", keys_that_sweep()));
  }
  return wrong(place, fmt::format("takes plain values, not a {}",
                                  node.kind == Kind::List ? "list in a list" : "mapping"));
}

Status check_twice(const std::vector<std::string>& texts, std::string_view place) {
  for (auto one = texts.begin(); one != texts.end(); ++one) {
    if (std::find(texts.begin(), one, *one) != one) {
      return wrong(place, fmt::format("has {} twice", *one));
    }
  }
  return Done{};
}

Status check_sweep(const std::vector<std::string>& texts, std::string_view place) {
  if (texts.empty()) return wrong(place, "is an empty list: there would be nothing to measure");
  if (texts.size() > kSweepMost) {
    return wrong(place,
                 fmt::format("has {} values, and at most {} are taken", texts.size(), kSweepMost));
  }
  return check_twice(texts, place);
}

Result<std::string> device_set(const ConfigNode& node, std::string_view place) {
  std::vector<std::string> names;
  for (const auto& one : node.values) {
    const bool is_name = one.kind == Kind::Plain && !trim(one.text).empty() &&
                         one.text.find(',') == std::string::npos;
    if (!is_name) {
      return wrong(place,
                   "must be a list of devices, as [0, 1] or [cpu:0, cpu:1], or a list of "
                   "such lists for a sweep");
    }
    names.emplace_back(trim(one.text));
  }
  MUSTER_TRY(check_sweep(names, place));
  return fmt::format("{}", fmt::join(names, ","));
}

Result<std::vector<std::string>> device_sets(const SweepKeyRow& row, const ConfigNode& node,
                                             std::string_view place) {
  if (node.kind != Kind::List) return std::vector{MUSTER_TRY(single_text(row, node, place))};
  const bool is_sweep = std::ranges::any_of(
      node.values, [](const ConfigNode& one) { return one.kind == Kind::List; });
  if (!is_sweep) return std::vector{MUSTER_TRY(device_set(node, place))};
  std::vector<std::string> sets;
  for (const auto& one : node.values) {
    // A device beside a list of devices: whether it is a point of its own is anybody's guess.
    const ConfigNode alone{.kind = Kind::List, .values = {one}};
    sets.push_back(MUSTER_TRY(device_set(one.kind == Kind::List ? one : alone, place)));
    if (one.kind != Kind::List) {
      return wrong(place, fmt::format("mixes devices and lists of devices: write [{}]", one.text));
    }
  }
  MUSTER_TRY(check_sweep(sets, place));
  return sets;
}

Result<std::vector<std::string>> memory_limits(const ConfigNode& node, std::string_view place) {
  if (node.kind != Kind::Mapping || node.values.empty()) {
    return wrong(place, "must be a mapping of devices to sizes, as {0: 20GB, 1: 20GB}");
  }
  std::string text;
  for (std::size_t i = 0; i < node.values.size(); ++i) {
    const auto& size = node.values[i];
    const bool has_marks = (node.keys[i] + size.text).find_first_of("=,") != std::string::npos;
    if (size.kind != Kind::Plain || has_marks || trim(size.text).empty() ||
        trim(node.keys[i]).empty()) {
      return wrong(place, fmt::format("must say a size for {}, as 20GB", node.keys[i]));
    }
    text += fmt::format("{}{}={}", i == 0 ? "" : ",", node.keys[i], size.text);
  }
  return std::vector{text};
}

}  // namespace

Result<std::vector<std::string>> read_sweep_values(const SweepKeyRow& row, const ConfigNode& node,
                                                   std::string_view place) {
  if (row.kind == SweepValueKind::Devices) return device_sets(row, node, place);
  if (row.kind == SweepValueKind::Memory) return memory_limits(node, place);
  if (node.kind != Kind::List || !row.may_sweep) {
    return std::vector{MUSTER_TRY(single_text(row, node, place))};
  }
  std::vector<std::string> texts;
  for (const auto& one : node.values) {
    texts.push_back(MUSTER_TRY(single_text(row, one, place)));
  }
  MUSTER_TRY(check_sweep(texts, place));
  return texts;
}

}  // namespace muster
