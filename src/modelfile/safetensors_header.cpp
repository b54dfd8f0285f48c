// The header is JSON of up to 100 MB from a file that is not trusted, so it is parsed as a
// stream of events into bounded state instead of a tree. Offsets must cover the data without
// holes or overlaps, as the format demands: two views can then never share bytes, and no bytes
// hide between tensors.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "modelfile/safetensors.h"
#include "modelfile/shown_name.h"

namespace muster {
namespace {

using nlohmann::json;

// Source: safetensors 0.8, MAX_HEADER_SIZE in tensor.rs.
constexpr std::uint64_t kHeaderBytesMax = 100'000'000;
constexpr std::uint64_t kLengthBytes = 8;
// Of an unknown field; the JSON reader keeps every bracket of an unbroken run.
constexpr std::size_t kDepthMax = 64;

struct TypeName {
  std::string_view name;
  TensorType type;
  std::uint64_t bits;  // per element
};

// In the order of TensorType. Source: safetensors 0.8, `Dtype::bitsize` in tensor.rs.
constexpr std::array<TypeName, 22> kTypes{{
    {"BOOL", TensorType::Bool, 8},
    {"F4", TensorType::F4, 4},
    {"F6_E2M3", TensorType::F6E2M3, 6},
    {"F6_E3M2", TensorType::F6E3M2, 6},
    {"U8", TensorType::U8, 8},
    {"I8", TensorType::I8, 8},
    {"F8_E4M3", TensorType::F8E4M3, 8},
    {"F8_E5M2", TensorType::F8E5M2, 8},
    {"F8_E8M0", TensorType::F8E8M0, 8},
    {"F8_E4M3FNUZ", TensorType::F8E4M3Fnuz, 8},
    {"F8_E5M2FNUZ", TensorType::F8E5M2Fnuz, 8},
    {"I16", TensorType::I16, 16},
    {"U16", TensorType::U16, 16},
    {"F16", TensorType::F16, 16},
    {"BF16", TensorType::BF16, 16},
    {"I32", TensorType::I32, 32},
    {"U32", TensorType::U32, 32},
    {"F32", TensorType::F32, 32},
    {"C64", TensorType::C64, 64},
    {"F64", TensorType::F64, 64},
    {"I64", TensorType::I64, 64},
    {"U64", TensorType::U64, 64},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<std::size_t>(kTypes[i].type) != i) return false;
  }
  return true;
}
static_assert(is_in_order(), "tensor_type_name looks types up by their number");

/// The fields of one tensor as they stand in the JSON text.
struct RawEntry {
  std::optional<std::string> dtype;
  bool has_shape = false;
  bool is_shape_list = false;
  bool is_shape_valid = true;
  std::vector<std::int64_t> shape;
  bool has_offsets = false;
  bool are_offsets_valid = true;
  std::vector<std::uint64_t> offsets;
};

// `data_offsets` are two integers relative to the end of the header.
Status read_offsets(const RawEntry& raw, std::uint64_t data_begin, std::uint64_t data_size,
                    std::string_view name, SafetensorsHeader::Entry& entry) {
  if (!raw.are_offsets_valid || raw.offsets.size() != 2) {
    return corrupt_error(fmt::format("data_offsets are not two integers: {}", shown_name(name)));
  }
  const auto begin = raw.offsets[0];
  const auto end = raw.offsets[1];
  if (begin > end || end > data_size) {
    return corrupt_error(fmt::format("data_offsets pass the end of the file: {} at {} to {} of {}",
                                     shown_name(name), begin, end, data_size));
  }
  entry.begin = data_begin + begin;
  entry.size = end - begin;
  return Done{};
}

// Fills shape and type and checks that their bytes are the ones the offsets span.
Status read_shape(RawEntry& raw, const TypeName& type, std::string_view name,
                  SafetensorsHeader::Entry& entry) {
  if (!raw.is_shape_list) {
    return corrupt_error(fmt::format("shape is not a list: {}", shown_name(name)));
  }
  if (!raw.is_shape_valid) {
    return corrupt_error(fmt::format("shape is not a list of sizes: {}", shown_name(name)));
  }
  std::uint64_t bits = type.bits;
  bool is_too_large = false;
  for (const auto extent : raw.shape) {
    is_too_large |= __builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits);
  }
  entry.shape = std::move(raw.shape);
  entry.type = type.type;
  if (is_too_large || bits % 8 != 0 || bits / 8 != entry.size) {
    return corrupt_error(fmt::format("shape and data_offsets disagree: {}", shown_name(name)));
  }
  return Done{};
}

Result<SafetensorsHeader::Entry> read_entry(RawEntry& raw, std::string_view name,
                                            std::uint64_t data_begin, std::uint64_t data_size) {
  if (!raw.dtype || !raw.has_shape || !raw.has_offsets) {
    return corrupt_error(
        fmt::format("a tensor needs dtype, shape and data_offsets: {}", shown_name(name)));
  }
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&](const TypeName& known) { return known.name == *raw.dtype; });
  if (type == kTypes.end()) {
    return corrupt_error(
        fmt::format("unknown dtype: {} of {}", shown_name(*raw.dtype), shown_name(name)));
  }
  SafetensorsHeader::Entry entry;
  MUSTER_TRY(read_offsets(raw, data_begin, data_size, name, entry));
  MUSTER_TRY(read_shape(raw, *type, name, entry));
  return entry;
}

/// Takes the header event by event, so that a hostile one costs no more memory than the tensors it
/// really names; the first fault ends the reading. The method names are nlohmann's SAX interface.
class HeaderReader {
 public:
  HeaderReader(std::uint64_t data_begin, std::uint64_t data_size)
      : data_begin_(data_begin), data_size_(data_size) {}

  Result<SafetensorsHeader> finish(bool is_parsed) && {
    if (error_) return *std::move(error_);
    if (!is_parsed) return corrupt_error("the header is not a JSON object");
    return std::move(header_);
  }

  bool null() { return other(); }
  bool boolean(bool /*value*/) { return other(); }
  bool number_integer(std::int64_t /*value*/) { return other(); }
  bool number_float(double /*value*/, const std::string& /*text*/) { return other(); }
  bool binary(json::binary_t& /*value*/) { return other(); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const json::exception& /*error*/) {
    return false;
  }

  bool number_unsigned(std::uint64_t value) {
    if (skipped_ > 0) return true;
    if (where_ == Where::Shape && value <= INT64_MAX) {
      raw_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (where_ == Where::Offsets && raw_.offsets.size() < 3) {
      raw_.offsets.push_back(value);
      return true;
    }
    return other();
  }

  bool string(std::string& value) {
    if (skipped_ > 0) return true;
    if (where_ == Where::Metadata) {
      header_.metadata.emplace(key_, value);
      return true;
    }
    if (where_ == Where::Tensor && key_ == "dtype") {
      raw_.dtype = value;
      return true;
    }
    return other();
  }

  bool key(std::string& value) {
    if (skipped_ > 0) return true;
    (where_ == Where::Root ? name_ : key_) = value;
    return true;
  }

  bool start_object(std::size_t /*elements*/) {
    if (skipped_ > 0) return skip();
    if (where_ == Where::Outside) {
      where_ = Where::Root;
      return true;
    }
    if (where_ == Where::Root) {
      where_ = name_ == "__metadata__" ? Where::Metadata : Where::Tensor;
      raw_ = RawEntry();
      return true;
    }
    return other() && skip();
  }

  bool end_object() {
    if (skipped_ > 0) return unskip();
    if (where_ == Where::Root) {
      where_ = Where::Outside;
      return true;
    }
    const bool is_tensor = where_ == Where::Tensor;
    where_ = Where::Root;
    return !is_tensor || end_tensor();
  }

  bool start_array(std::size_t /*elements*/) {
    if (skipped_ > 0) return skip();
    if (where_ == Where::Tensor && key_ == "shape") {
      raw_.has_shape = raw_.is_shape_list = true;
      raw_.shape.clear();
      where_ = Where::Shape;
      return true;
    }
    if (where_ == Where::Tensor && key_ == "data_offsets") {
      raw_.has_offsets = true;
      raw_.offsets.clear();
      where_ = Where::Offsets;
      return true;
    }
    return other() && skip();
  }

  bool end_array() {
    if (skipped_ > 0) return unskip();
    where_ = Where::Tensor;
    return true;
  }

 private:
  enum class Where : std::uint8_t { Outside, Root, Metadata, Tensor, Shape, Offsets };

  // A value that is none of the expected; unknown fields of a tensor are passed over, as
  // safetensors does.
  bool other() {
    if (skipped_ > 0) return true;
    switch (where_) {
      case Where::Outside:
        return fail("the header is not a JSON object");
      case Where::Root:
        return fail(name_ == "__metadata__"
                        ? "__metadata__ is not an object"
                        : fmt::format("a tensor needs dtype, shape and data_offsets: {}",
                                      shown_name(name_)));
      case Where::Metadata:
        return fail("__metadata__ holds something other than strings");
      case Where::Tensor:
        raw_.has_shape |= key_ == "shape";
        raw_.has_offsets |= key_ == "data_offsets";
        raw_.are_offsets_valid &= key_ != "data_offsets";
        return true;
      case Where::Shape:
        raw_.is_shape_valid = false;
        return true;
      case Where::Offsets:
        raw_.are_offsets_valid = false;
        return true;
    }
    return false;
  }

  bool skip() {
    if (++skipped_ <= kDepthMax) return true;
    return fail(fmt::format("nested deeper than {}: {}", kDepthMax, shown_name(name_)));
  }

  bool unskip() {
    --skipped_;
    return true;
  }

  bool end_tensor() {
    auto entry = read_entry(raw_, name_, data_begin_, data_size_);
    if (!entry) {
      error_ = entry.error();
      return false;
    }
    if (header_.tensors.emplace(name_, *std::move(entry)).second) return true;
    return fail(fmt::format("a tensor is there twice: {}", shown_name(name_)));
  }

  bool fail(std::string message) {
    error_ = corrupt_error(std::move(message));
    return false;
  }

  std::uint64_t data_begin_;
  std::uint64_t data_size_;
  Where where_ = Where::Outside;
  std::size_t skipped_ = 0;  // lists and objects open that are passed over
  std::string name_;         // of the tensor
  std::string key_;          // of its field
  RawEntry raw_;
  SafetensorsHeader header_;
  std::optional<Error> error_;
};

// The format allows neither holes nor overlaps: in file order each tensor begins where the last
// ends.
Status check_coverage(const SafetensorsHeader& header, std::uint64_t data_begin,
                      std::uint64_t file_size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const auto& [name, entry] : header.tensors) {
    spans.emplace_back(entry.begin, entry.begin + entry.size);
  }
  std::sort(spans.begin(), spans.end());
  auto reached = data_begin;
  for (const auto& [begin, end] : spans) {
    if (begin != reached) {
      return corrupt_error(fmt::format("tensors {} at byte {}",
                                       begin < reached ? "overlap" : "leave a hole", reached));
    }
    reached = end;
  }
  if (reached != file_size) {
    return corrupt_error(
        fmt::format("the tensors end at byte {}, the file at {}", reached, file_size));
  }
  return Done{};
}

}  // namespace

std::string_view tensor_type_name(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

bool is_plain_float(TensorType type) {
  return type == TensorType::F16 || type == TensorType::BF16 || type == TensorType::F32 ||
         type == TensorType::F64;
}

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> head,
                                                   std::uint64_t file_size) {
  if (head.size() < kLengthBytes || file_size < kLengthBytes) {
    return corrupt_error(
        fmt::format("shorter than the 8 bytes of the header length: {}", file_size));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8U | std::to_integer<std::uint64_t>(head[i]);
  }
  if (length > kHeaderBytesMax || length > file_size - kLengthBytes ||
      length > head.size() - kLengthBytes) {
    return corrupt_error(
        fmt::format("header length passes the end of the file: {} of {} bytes", length, file_size));
  }

  const auto* text = reinterpret_cast<const char*>(head.data()) + kLengthBytes;
  const auto data_begin = kLengthBytes + length;
  HeaderReader reader(data_begin, file_size - data_begin);
  const bool is_parsed = json::sax_parse(text, text + length, &reader);
  auto header = MUSTER_TRY(std::move(reader).finish(is_parsed));
  MUSTER_TRY(check_coverage(header, data_begin, file_size));
  return header;
}

}  // namespace muster
