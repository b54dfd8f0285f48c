// The header of a GGUF file comes from the network and is not trusted. A count is never used to
// reserve memory: entries are read one by one, and a false count ends at the end of the file.
// Long lists are skipped and stay in the mapped file. In the end every tensor has bytes of its
// own, inside the file and aligned, so code behind this point need not check again.

#include "modelfile/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "modelfile/gguf_cursor.h"
#include "modelfile/shown_name.h"

namespace muster {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kDefaultAlignment = 32;
// Source: docs/gguf.md of ggml: keys have at most 2^16 - 1 bytes, names 64, tensors 4 dimensions.
constexpr std::size_t kKeyBytesMax = 65535;
constexpr std::size_t kNameBytesMax = 64;
constexpr std::uint32_t kDimensionsMax = 4;
// What is kept of a list; see GgufList.
constexpr std::uint64_t kNumbersKept = 2048;

Result<GgufValueType> read_type(GgufCursor& cursor, std::string_view key) {
  const auto type = MUSTER_TRY(cursor.number<std::uint32_t>());
  if (type < kGgufValueTypeCount) return static_cast<GgufValueType>(type);
  return corrupt_error(
      fmt::format("a metadata type that is not known: {} of {}", type, shown_name(key)));
}

Result<GgufValue> read_scalar(GgufCursor& cursor, GgufValueType type, std::string_view key) {
  switch (type) {
    case GgufValueType::U8:
      return GgufValue(std::uint64_t{MUSTER_TRY(cursor.number<std::uint8_t>())});
    case GgufValueType::I8:
      return GgufValue(std::int64_t{MUSTER_TRY(cursor.number<std::int8_t>())});
    case GgufValueType::U16:
      return GgufValue(std::uint64_t{MUSTER_TRY(cursor.number<std::uint16_t>())});
    case GgufValueType::I16:
      return GgufValue(std::int64_t{MUSTER_TRY(cursor.number<std::int16_t>())});
    case GgufValueType::U32:
      return GgufValue(std::uint64_t{MUSTER_TRY(cursor.number<std::uint32_t>())});
    case GgufValueType::I32:
      return GgufValue(std::int64_t{MUSTER_TRY(cursor.number<std::int32_t>())});
    case GgufValueType::F32:
      return GgufValue(double{MUSTER_TRY(cursor.number<float>())});
    case GgufValueType::Bool: {
      const auto flag = MUSTER_TRY(cursor.number<std::uint8_t>());
      if (flag > 1)
        return corrupt_error(fmt::format("a flag is neither 0 nor 1: {}", shown_name(key)));
      return GgufValue(flag == 1);
    }
    case GgufValueType::String:
      return GgufValue(std::string(MUSTER_TRY(cursor.text())));
    case GgufValueType::U64:
      return GgufValue(MUSTER_TRY(cursor.number<std::uint64_t>()));
    case GgufValueType::I64:
      return GgufValue(MUSTER_TRY(cursor.number<std::int64_t>()));
    case GgufValueType::F64:
      return GgufValue(MUSTER_TRY(cursor.number<double>()));
    case GgufValueType::Array:
      break;
  }
  return corrupt_error(fmt::format("a list of lists: {}", shown_name(key)));
}

std::optional<std::int64_t> as_number(const GgufValue& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value); number && *number <= INT64_MAX) {
    return static_cast<std::int64_t>(*number);
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::nullopt;
}

// A list of strings has to be walked, since only that shows where it ends; lists of numbers are
// skipped by their size. Kept are those that may have an entry for each layer.
Result<GgufValue> read_list(GgufCursor& cursor, std::string_view key) {
  const auto type = MUSTER_TRY(read_type(cursor, key));
  GgufList list;
  list.count = MUSTER_TRY(cursor.number<std::uint64_t>());
  list.type = type;
  list.begin = cursor.position();
  const bool is_kept = list.count <= kNumbersKept && type != GgufValueType::F32 &&
                       type != GgufValueType::F64 && type != GgufValueType::String;
  if (!is_kept && gguf_value_size(type) > 0) {
    MUSTER_TRY(cursor.skip(list.count, gguf_value_size(type)));
    return GgufValue(std::move(list));
  }
  for (std::uint64_t i = 0; i < list.count; ++i) {
    if (type == GgufValueType::String) {
      MUSTER_TRY(cursor.text());
      continue;
    }
    const auto number = as_number(MUSTER_TRY(read_scalar(cursor, type, key)));
    if (!number) return corrupt_error(fmt::format("a number beyond 63 bits: {}", shown_name(key)));
    list.numbers.push_back(*number);
  }
  return GgufValue(std::move(list));
}

Status read_metadata(GgufCursor& cursor, std::uint64_t count, GgufHeader& header) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto key = MUSTER_TRY(cursor.text());
    if (key.empty() || key.size() > kKeyBytesMax) {
      return corrupt_error(fmt::format("metadata key {} has {} bytes", i, key.size()));
    }
    const auto type = MUSTER_TRY(read_type(cursor, key));
    auto value = MUSTER_TRY(type == GgufValueType::Array ? read_list(cursor, key)
                                                         : read_scalar(cursor, type, key));
    if (!header.metadata.emplace(std::string(key), std::move(value)).second) {
      return corrupt_error(fmt::format("a metadata key is there twice: {}", shown_name(key)));
    }
  }
  header.alignment = kDefaultAlignment;
  const auto found = header.metadata.find("general.alignment");
  if (found == header.metadata.end()) return Done{};
  const auto* stated = std::get_if<std::uint64_t>(&found->second);
  if (stated == nullptr || *stated > (1U << 30) || !std::has_single_bit(*stated)) {
    return corrupt_error("general.alignment is not a power of two");
  }
  header.alignment = static_cast<std::uint32_t>(*stated);
  return Done{};
}

// Bytes of a tensor: whole blocks in every row.
Result<std::uint64_t> tensor_bytes(const GgufTensor& tensor) {
  const auto row = tensor.shape.empty() ? 1 : static_cast<std::uint64_t>(tensor.shape[0]);
  if (row % tensor.type->block_elements != 0) {
    return corrupt_error(fmt::format("a row is no whole number of {} blocks: {}", tensor.type->name,
                                     shown_name(tensor.name)));
  }
  std::uint64_t bytes = row / tensor.type->block_elements;
  bool is_too_large = __builtin_mul_overflow(bytes, tensor.type->block_bytes, &bytes);
  for (std::size_t i = 1; i < tensor.shape.size(); ++i) {
    is_too_large |=
        __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(tensor.shape[i]), &bytes);
  }
  if (is_too_large)
    return corrupt_error(fmt::format("a shape overflows: {}", shown_name(tensor.name)));
  return bytes;
}

// `begin` is still relative to the data section here.
Result<GgufTensor> read_tensor(GgufCursor& cursor, std::uint64_t index) {
  GgufTensor tensor;
  const auto name = MUSTER_TRY(cursor.text());
  if (name.empty() || name.size() > kNameBytesMax) {
    return corrupt_error(fmt::format("tensor name {} has {} bytes", index, name.size()));
  }
  tensor.name = std::string(name);
  const auto dimensions = MUSTER_TRY(cursor.number<std::uint32_t>());
  if (dimensions > kDimensionsMax) {
    return corrupt_error(
        fmt::format("more than 4 dimensions: {} has {}", shown_name(name), dimensions));
  }
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto extent = MUSTER_TRY(cursor.number<std::uint64_t>());
    if (extent > INT64_MAX)
      return corrupt_error(fmt::format("a shape overflows: {}", shown_name(name)));
    tensor.shape.push_back(static_cast<std::int64_t>(extent));
  }
  const auto type = MUSTER_TRY(cursor.number<std::uint32_t>());
  tensor.type = find_ggml_type(type);
  if (tensor.type == nullptr) {
    return corrupt_error(
        fmt::format("a tensor type that is not known: {} of {}", type, shown_name(name)));
  }
  tensor.begin = MUSTER_TRY(cursor.number<std::uint64_t>());
  tensor.size = MUSTER_TRY(tensor_bytes(tensor));
  return tensor;
}

// Moves the offsets to the file's start and checks that each tensor has its own bytes.
Status place_tensors(GgufHeader& header, std::uint64_t header_size, std::uint64_t file_size) {
  if (header.tensors.empty()) return Done{};
  const std::uint64_t alignment = header.alignment;
  const auto data_begin = (header_size + alignment - 1) / alignment * alignment;
  if (data_begin > file_size) return corrupt_error("the tensors begin past the end of the file");
  const auto data_size = file_size - data_begin;

  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (auto& tensor : header.tensors) {
    if (tensor.begin % alignment != 0) {
      return corrupt_error(fmt::format("an offset is not a multiple of {}: {} at {}", alignment,
                                       shown_name(tensor.name), tensor.begin));
    }
    if (tensor.begin > data_size || tensor.size > data_size - tensor.begin) {
      return corrupt_error(
          fmt::format("a tensor passes the end of the file: {} of {} bytes at {} of {}",
                      shown_name(tensor.name), tensor.size, tensor.begin, data_size));
    }
    tensor.begin += data_begin;
    if (tensor.size > 0) spans.emplace_back(tensor.begin, tensor.begin + tensor.size);
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first < spans[i - 1].second) {
      return corrupt_error(fmt::format("tensors overlap at byte {}", spans[i].first));
    }
  }
  return Done{};
}

Status check_version(std::uint32_t version) {
  const auto refuse = [](std::string message) {
    return Error{ErrorKind::Unsupported, std::move(message)};
  };
  if (version == 2 || version == 3) return Done{};
  // The low half of a version is 0 when its bytes stand the other way round.
  if (version != 0 && (version & 0xFFFFU) == 0) {
    return refuse(
        "a big-endian GGUF file: convert it to little-endian with gguf_convert_endian.py");
  }
  return refuse(fmt::format("GGUF version {}: versions 2 and 3 are read", version));
}

}  // namespace

Result<GgufHeader> parse_gguf_header(std::span<const std::byte> head, std::uint64_t file_size) {
  if (head.size() < kMagic.size() || std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    return corrupt_error("not a GGUF file: it does not begin with GGUF");
  }
  GgufCursor cursor(head);
  MUSTER_TRY(cursor.skip(1, kMagic.size()));
  GgufHeader header;
  header.version = MUSTER_TRY(cursor.number<std::uint32_t>());
  MUSTER_TRY(check_version(header.version));
  const auto tensor_count = MUSTER_TRY(cursor.number<std::uint64_t>());
  const auto metadata_count = MUSTER_TRY(cursor.number<std::uint64_t>());
  MUSTER_TRY(read_metadata(cursor, metadata_count, header));

  std::set<std::string_view> names;
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    header.tensors.push_back(MUSTER_TRY(read_tensor(cursor, i)));
  }
  for (const auto& tensor : header.tensors) {
    if (!names.insert(tensor.name).second) {
      return corrupt_error(fmt::format("a tensor is there twice: {}", shown_name(tensor.name)));
    }
  }
  MUSTER_TRY(place_tensors(header, cursor.position(), file_size));
  return header;
}

}  // namespace muster
