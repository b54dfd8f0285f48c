// Lines of an index: written for each record, read for the rows of hits. The row comes first in
// every line, so that lines which are not wanted are passed over by their first bytes, without
// parsing JSON.

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "dataset/json_text.h"
#include "dataset/line_splitter.h"
#include "dataset/vector_file.h"

namespace muster {
namespace {

constexpr std::uint64_t kIndexLineSizeMax =
    1ULL << 30;  // a text of TextReaderOptions, all of it escaped
constexpr std::string_view kRowPrefix = R"({"row":)";

void append_key(std::string_view key, std::string& out) {
  out += ",\"";
  out += key;
  out += "\":";
}

void append_number(std::uint64_t value, std::string& out) {
  char digits[20];  // of 2^64 - 1
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

simdjson::error_code read_string(simdjson::dom::object line, std::string_view key,
                                 std::string& out) {
  std::string_view value;
  const auto code = line[key].get(value);
  if (code == simdjson::SUCCESS) out.assign(value);
  return code;
}

// The line of a record that has a row.
bool parse_entry(simdjson::dom::parser& parser, std::string_view line, IndexEntry& entry) {
  simdjson::dom::object object;
  std::uint64_t row = 0;
  std::uint64_t token_count = 0;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(line.data());
  if (parser.parse(bytes, line.size(), /*realloc_if_needed=*/false).get(object) !=
          simdjson::SUCCESS ||
      object["row"].get(row) != simdjson::SUCCESS ||
      object["line"].get(entry.line) != simdjson::SUCCESS ||
      object["tokens"].get(token_count) != simdjson::SUCCESS ||
      object["truncated"].get(entry.is_truncated) != simdjson::SUCCESS ||
      read_string(object, "input", entry.input) != simdjson::SUCCESS ||
      read_string(object, "text", entry.text) != simdjson::SUCCESS) {
    return false;
  }
  entry.row = row;
  entry.token_count = static_cast<std::uint32_t>(token_count);
  simdjson::dom::object fields;
  const auto has_fields = object["fields"].get(fields);
  if (has_fields == simdjson::SUCCESS) entry.fields = simdjson::minify(fields);
  if (has_fields != simdjson::SUCCESS && has_fields != simdjson::NO_SUCH_FIELD) return false;
  const auto id = read_string(object, "id", entry.id);
  return id == simdjson::SUCCESS || id == simdjson::NO_SUCH_FIELD;
}

}  // namespace

std::filesystem::path index_path_of(const std::filesystem::path& out) {
  auto path = out;
  return path += ".index.jsonl";
}

void append_index_line(const IndexEntry& entry, std::string& out) {
  out += kRowPrefix;
  if (entry.row) {
    append_number(*entry.row, out);
  } else {
    out += "null";
  }
  if (!entry.id.empty()) {
    append_key("id", out);
    append_json_string(entry.id, out);
  }
  append_key("input", out);
  append_json_string(entry.input, out);
  append_key("line", out);
  append_number(entry.line, out);
  if (entry.row) {
    append_key("tokens", out);
    append_number(entry.token_count, out);
    append_key("truncated", out);
    out += entry.is_truncated ? "true" : "false";
    if (!entry.fields.empty()) {
      append_key("fields", out);
      out += entry.fields;
    }
    append_key("text", out);
    append_json_string(entry.text, out);
  } else {
    append_key("reason", out);
    append_json_string(entry.reason, out);
  }
  out += "}\n";
}

std::optional<IndexEntry> parse_index_line(std::string_view line) {
  IndexEntry entry;
  simdjson::dom::parser parser;
  if (!parse_entry(parser, line, entry)) return std::nullopt;
  return entry;
}

std::optional<std::uint64_t> row_of_index_line(std::string_view line) {
  if (!line.starts_with(kRowPrefix)) {
    return std::nullopt;
  }
  line.remove_prefix(kRowPrefix.size());
  std::uint64_t row = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), row);
  return parsed.ec == std::errc() ? std::optional(row) : std::nullopt;
}

bool is_index_line_of_bad_record(std::string_view line) {
  return line.starts_with(R"({"row":null,)");
}

Result<std::vector<IndexEntry>> read_index_entries(const std::filesystem::path& index,
                                                   std::span<const std::uint64_t> rows) {
  std::unordered_map<std::uint64_t, IndexEntry> found;
  for (const auto row : rows) found.try_emplace(row);
  LineSplitter lines(MUSTER_TRY(open_raw_source(index.string())), kIndexLineSizeMax);
  simdjson::dom::parser parser;
  std::size_t missing = found.size();
  Line line;
  while (missing > 0 && MUSTER_TRY(lines.next(line))) {
    const auto row = row_of_index_line(line.text);
    if (!row && !is_index_line_of_bad_record(line.text)) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("{}:{}: not a line of an index", index.string(), line.number)};
    }
    const auto wanted = row ? found.find(*row) : found.end();
    if (wanted == found.end() || wanted->second.row) continue;
    if (!parse_entry(parser, line.text, wanted->second)) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("{}:{}: not a line of an index", index.string(), line.number)};
    }
    --missing;
  }
  std::vector<IndexEntry> entries;
  for (const auto row : rows) {
    const auto& entry = found.at(row);
    if (!entry.row) {
      return Error{ErrorKind::NotFound, fmt::format("{}: no line for row {}", index.string(), row)};
    }
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace muster
