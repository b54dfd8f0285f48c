// Rows in slots of one size behind a head. Each slot has its own checksum, so that whatever was
// being written when a run ended is noticed wherever it lies, and a slot can be used again without
// a word to the others.

#include "dataset/ahead_layout.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "dataset/vector_writer.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "the slots are little-endian");

constexpr std::string_view kMagic = "MSTAHEAD";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHashSize = 32;  // hexadecimal digits of a Hash128
constexpr std::size_t kSumSize = 8;
constexpr std::size_t kFixedSize = 8 + kHashSize + 4 + 4;  // of a slot, before the values

// More than any window of records has: memory does not grow with what lies on the disk.
constexpr std::uint64_t kSlotsMost = 1 << 20;

template <typename Number>
void put(Number number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <typename Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

std::uint64_t slot_sum(std::string_view run, std::string_view content) {
  std::string covered(run);
  covered += content;
  return hash64(covered);
}

// How far the source could fill it.
Result<std::string_view> read_into(ByteSource& source, std::string& buffer) {
  std::size_t size = 0;
  while (size < buffer.size()) {
    const auto count = MUSTER_TRY(source.read(std::span(buffer).subspan(size)));
    if (count == 0) break;
    size += count;
  }
  return std::string_view(buffer).substr(0, size);
}

// A file that became longer and did not get its bytes before the power went reads as zeros.
bool may_be_ours(std::string_view header) {
  const auto begin = header.substr(0, kMagic.size());
  return kMagic.starts_with(begin) || begin.find_first_not_of('\0') == std::string_view::npos;
}

// nullopt for a head that never became whole.
Result<std::optional<AheadContent>> read_header(std::string_view header, const std::string& name) {
  if (!may_be_ours(header)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: is there and no file of a run of muster's: remove it, or name "
                             "another output with -o",
                             name)};
  }
  const auto summed = kAheadHeaderSize - kSumSize;
  if (header.size() < kAheadHeaderSize ||
      number_at<std::uint64_t>(header, summed) != hash64(header.substr(0, summed))) {
    return std::optional<AheadContent>();
  }
  if (number_at<std::uint32_t>(header, kMagic.size()) != kVersion) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("{}: written by another version of muster: start anew with --restart", name)};
  }
  AheadContent content;
  content.dim = number_at<std::uint32_t>(header, kMagic.size() + 4);
  content.run = header.substr(kMagic.size() + 8, kHashSize);
  if (content.dim == 0 || content.dim > kAheadDimMost) return std::optional<AheadContent>();
  return std::optional(std::move(content));
}

}  // namespace

std::uint64_t ahead_slot_size(std::uint32_t dim) {
  return kFixedSize + std::uint64_t{dim} * sizeof(float) + kSumSize;
}

std::string ahead_header(std::string_view run, std::uint32_t dim) {
  MUSTER_CHECK(run.size() == kHashSize);
  std::string header(kMagic);
  put(kVersion, header);
  put(dim, header);
  header += run;
  put(hash64(header), header);
  return header;
}

void encode_ahead_row(const AheadRow& row, std::span<const float> values, std::string_view run,
                      std::string& out) {
  MUSTER_CHECK(row.text_hash.size() == kHashSize);
  out.clear();
  put(row.record, out);
  out += row.text_hash;
  put(row.token_count, out);
  put(std::uint32_t{row.is_truncated}, out);
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  put(slot_sum(run, out), out);
}

std::optional<AheadRow> decode_ahead_row(std::string_view slot, std::string_view run) {
  if (slot.size() < kFixedSize + kSumSize) return std::nullopt;
  const auto content = slot.substr(0, slot.size() - kSumSize);
  if (number_at<std::uint64_t>(slot, content.size()) != slot_sum(run, content)) {
    return std::nullopt;
  }
  AheadRow row;
  row.record = number_at<std::uint64_t>(content, 0);
  row.text_hash = content.substr(8, kHashSize);
  row.token_count = number_at<std::uint32_t>(content, 8 + kHashSize);
  row.is_truncated = number_at<std::uint32_t>(content, 8 + kHashSize + 4) != 0;
  const auto values = content.substr(kFixedSize);
  row.values.resize(values.size() / sizeof(float));
  std::memcpy(row.values.data(), values.data(), row.values.size() * sizeof(float));
  if (!is_all_finite(row.values)) return std::nullopt;
  return row;
}

Result<std::optional<AheadContent>> read_ahead(ByteSource& source, const std::string& name) {
  std::string buffer(kAheadHeaderSize, '\0');
  const auto header = MUSTER_TRY(read_into(source, buffer));
  auto content = MUSTER_TRY(read_header(header, name));
  if (!content) return content;
  buffer.resize(ahead_slot_size(content->dim));
  while (content->slot_count < kSlotsMost) {
    const auto slot = MUSTER_TRY(read_into(source, buffer));
    if (slot.size() < buffer.size()) break;
    if (auto row = decode_ahead_row(slot, content->run)) {
      content->entries.push_back({row->record, std::move(row->text_hash), content->slot_count});
    }
    ++content->slot_count;
  }
  return content;
}

}  // namespace muster
