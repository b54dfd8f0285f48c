// Vectors as lines of JSON.

#include "dataset/jsonl_vectors.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text.h"
#include "dataset/line_splitter.h"

namespace muster {
namespace {

constexpr std::uint64_t kLineSizeMax = 64 << 20;  // millions of numbers: no vector is longer

// Appends the numbers of "[1,2.5]"; false when the line is anything else.
bool append_numbers(std::string_view line, std::vector<float>& values) {
  line = trim(line);
  if (!line.starts_with('[') || !line.ends_with(']') || line.size() < 2) {
    return false;
  }
  line = line.substr(1, line.size() - 2);
  for (;;) {
    line = trim(line);
    float value = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), value);
    if (parsed.ec != std::errc() || !std::isfinite(value)) {
      return false;
    }
    values.push_back(value);
    line = trim(line.substr(static_cast<std::size_t>(parsed.ptr - line.data())));
    if (line.empty()) {
      return true;
    }
    if (line.front() != ',') {
      return false;
    }
    line.remove_prefix(1);
  }
}

// The text of the array in {"id":"a7","embedding":[1,2.5]}, as it stands there: a number that
// passed through a double could come out as another float32. nullopt for another object.
std::optional<std::string_view> embedding_of(simdjson::ondemand::parser& parser,
                                             std::string_view line) {
  namespace ondemand = simdjson::ondemand;
  const simdjson::padded_string_view padded(line.data(), line.size(),
                                            line.size() + LineSplitter::kPadding);
  ondemand::document document;
  ondemand::array array;
  std::string_view text;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document["embedding"].get_array().get(array) != simdjson::SUCCESS ||
      array.raw_json().get(text) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  return text;
}

}  // namespace

Result<JsonlVectors> read_jsonl_vectors(std::unique_ptr<ByteSource> source,
                                        const std::string& name) {
  LineSplitter lines(std::move(source), kLineSizeMax);
  JsonlVectors vectors;
  simdjson::ondemand::parser parser;
  Line line;
  while (MUSTER_TRY(lines.next(line))) {
    const std::size_t before = vectors.values.size();
    const bool is_object = trim(line.text).starts_with('{');
    const auto numbers = is_object ? embedding_of(parser, line.text) : std::optional(line.text);
    if (line.is_too_long || !numbers || !append_numbers(*numbers, vectors.values)) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("{}:{}: not an array of numbers{}", name, line.number,
                               is_object ? " in \"embedding\" of an object" : "")};
    }
    const auto count = static_cast<std::uint32_t>(vectors.values.size() - before);
    if (line.number == 1) {
      vectors.dim = count;
    }
    if (count != vectors.dim) {
      return Error{ErrorKind::Corrupt, fmt::format("{}:{}: {} numbers where the first line has {}",
                                                   name, line.number, count, vectors.dim)};
    }
  }
  if (vectors.dim == 0) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: no vector in it", name)};
  }
  return vectors;
}

}  // namespace muster
