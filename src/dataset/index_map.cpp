// An index that is searched: one pass finds its lines and their fields, a text is read when it is
// asked for.

#include "dataset/index_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <simdjson.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "dataset/json_fields.h"

namespace muster {
namespace {

namespace dom = simdjson::dom;

// A text of TextReaderOptions, all of it escaped.
constexpr std::uint64_t kLineSizeMax = 1ULL << 30;
static_assert(kLineSizeMax <= std::numeric_limits<std::uint32_t>::max());

struct PlacedLine {
  std::string_view text;  // without its end; kPadding bytes behind it can be read
  std::uint64_t offset = 0;
};

// Cuts a source into lines and knows where each begins. LineSplitter, which is for files of
// anybody, takes byte order marks and carriage returns away and does not tell.
class PlacedLines {
 public:
  static constexpr std::size_t kPadding = simdjson::SIMDJSON_PADDING;

  explicit PlacedLines(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  // False at the end.
  Result<bool> next(PlacedLine& line) {
    begin_ += std::exchange(given_, 0);
    std::size_t looked_at = 0;
    for (;;) {
      const char* const from = buffer_.data() + begin_;
      const std::size_t size = end_ - begin_;
      const void* const found = std::memchr(from + looked_at, '\n', size - looked_at);
      const bool is_last = found == nullptr && is_source_done_;
      if (is_last && size == 0) return false;
      if (found != nullptr || is_last) {
        const auto length =
            is_last ? size : static_cast<std::size_t>(static_cast<const char*>(found) - from);
        given_ = length + (is_last ? 0 : 1);
        line = {.text = {from, length}, .offset = offset_ + begin_};
        return true;
      }
      looked_at = size;
      if (size > kLineSizeMax) return Error{ErrorKind::Corrupt, "longer than a line of an index"};
      MUSTER_TRY(fill());
    }
  }

 private:
  Status fill() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    offset_ += begin_;
    end_ -= std::exchange(begin_, 0);
    if (buffer_.size() < end_ + kReadSize + kPadding) {
      buffer_.resize(2 * end_ + kReadSize + kPadding);
    }
    const auto count = MUSTER_TRY(
        source_->read(std::span(buffer_).subspan(end_, buffer_.size() - end_ - kPadding)));
    is_source_done_ = count == 0;
    end_ += count;
    return Done{};
  }

  static constexpr std::size_t kReadSize = 1 << 18;

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_ = std::vector<char>(kReadSize + kPadding);
  std::uint64_t offset_ = 0;  // of the buffer's first byte in the source
  std::size_t begin_ = 0;     // buffer_[begin_, end_) is read and not yet passed over
  std::size_t end_ = 0;
  std::size_t given_ = 0;  // bytes of the line given last, with its end
  bool is_source_done_ = false;
};

FieldScalar scalar_of(dom::element value) {
  FieldScalar scalar;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    scalar.text = text;
    scalar.number = number_of_text(text);
  } else {
    append_json_value(value, scalar.text);
    double number = 0;
    if (value.get(number) == simdjson::SUCCESS) scalar.number = number;
  }
  return scalar;
}

FieldValue value_of(dom::element value) {
  FieldValue scalars;
  dom::array list;
  if (value.get(list) == simdjson::SUCCESS) {
    for (const auto element : list) {
      if (!element.is_null()) scalars.push_back(scalar_of(element));
    }
  } else if (!value.is_null()) {
    scalars.push_back(scalar_of(value));
  }
  return scalars;
}

// Adds a row with what the line keeps.
Status add_fields(dom::parser& parser, std::string_view line, FieldTable& fields) {
  fields.add_row();
  // Most indexes keep none. In a text these words would have their quotes escaped.
  if (line.find(R"("fields":)") == std::string_view::npos) return Done{};
  dom::object object;
  dom::object kept;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(line.data());
  if (parser.parse(bytes, line.size(), /*realloc_if_needed=*/false).get(object) !=
          simdjson::SUCCESS ||
      object["fields"].get(kept) != simdjson::SUCCESS) {
    return Error{ErrorKind::Corrupt, "not a line of an index"};
  }
  for (const auto field : kept) MUSTER_TRY(fields.set(field.key, value_of(field.value)));
  return Done{};
}

}  // namespace

Result<IndexMap> map_index(std::unique_ptr<ByteSource> source, const std::string& name) {
  PlacedLines lines(std::move(source));
  IndexMap map;
  dom::parser parser;
  PlacedLine line;
  std::uint64_t number = 0;
  const auto fault = [&](std::string_view why) {
    return Error{ErrorKind::Corrupt, fmt::format("{}:{}: {}", name, number, why)};
  };
  while (MUSTER_TRY(lines.next(line))) {
    ++number;
    if (is_index_line_of_bad_record(line.text)) continue;
    const auto row = row_of_index_line(line.text);
    if (!row) return fault("not a line of an index");
    if (*row != map.lines.size()) {
      return fault(fmt::format("row {} where {} follows", *row, map.lines.size()));
    }
    if (const auto added = add_fields(parser, line.text, map.fields); !added) {
      return fault(added.error().message);
    }
    map.lines.push_back({line.offset, static_cast<std::uint32_t>(line.text.size())});
  }
  // It stays for as long as a server runs.
  map.lines.shrink_to_fit();
  map.fields.finish();
  return map;
}

Result<std::unique_ptr<IndexFile>> IndexFile::open(const std::filesystem::path& path,
                                                   std::uint64_t row_count) {
  const auto name = path.string();
  auto file = MUSTER_TRY(open_regular_file(path, O_RDONLY));
  auto source = MUSTER_TRY(open_raw_source(name));
  auto map = MUSTER_TRY(map_index(std::move(source), name));
  if (map.lines.size() != row_count) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: {} rows, and the vectors have {}", name,
                                                 map.lines.size(), row_count)};
  }
  return std::unique_ptr<IndexFile>(new IndexFile(name, std::move(file.fd), std::move(map)));
}

Result<IndexEntry> IndexFile::entry(std::uint64_t row) const {
  MUSTER_CHECK(row < map_.lines.size());
  const auto [offset, size] = map_.lines[row];
  std::string line(size + simdjson::SIMDJSON_PADDING, '\0');
  std::size_t done = 0;
  while (done < size) {
    const auto count =
        ::pread(fd_.get(), line.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(name_, "read", errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  auto entry = parse_index_line(std::string_view(line).substr(0, done));
  if (!entry || entry->row != row) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: changed since it was opened: no line for row {}", name_, row)};
  }
  return *std::move(entry);
}

}  // namespace muster
