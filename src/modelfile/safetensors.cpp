#include "modelfile/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "modelfile/weight_files.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Source: safetensors 0.8, MAX_HEADER_SIZE in tensor.rs.
constexpr std::uint64_t kHeaderBytesMax = 100'000'000;
constexpr std::uint64_t kLengthBytes = 8;

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

Error corrupt(std::string message) { return Error{ErrorKind::Corrupt, std::move(message)}; }

// Names come from the file: keep a hostile one from flooding the message or the terminal.
std::string shown(std::string_view name) {
  return json(std::string(name.substr(0, 80)))
      .dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// `data_offsets` are two integers relative to the end of the header.
Status read_offsets(const json& value, std::uint64_t data_begin, std::uint64_t data_size,
                    std::string_view name, SafetensorsHeader::Entry& entry) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
      !value[1].is_number_unsigned()) {
    return corrupt(fmt::format("data_offsets are not two integers: {}", shown(name)));
  }
  const auto begin = value[0].get<std::uint64_t>();
  const auto end = value[1].get<std::uint64_t>();
  if (begin > end || end > data_size) {
    return corrupt(fmt::format("data_offsets pass the end of the file: {} at {} to {} of {}",
                               shown(name), begin, end, data_size));
  }
  entry.begin = data_begin + begin;
  entry.size = end - begin;
  return Done{};
}

// Fills shape and type and checks that their bytes are the ones the offsets span.
Status read_shape(const json& value, const TypeName& type, std::string_view name,
                  SafetensorsHeader::Entry& entry) {
  if (!value.is_array()) return corrupt(fmt::format("shape is not a list: {}", shown(name)));
  std::optional<std::uint64_t> bits = type.bits;
  for (const auto& extent : value) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > INT64_MAX) {
      return corrupt(fmt::format("shape is not a list of sizes: {}", shown(name)));
    }
    entry.shape.push_back(static_cast<std::int64_t>(extent.get<std::uint64_t>()));
    if (bits) bits = multiply(*bits, extent.get<std::uint64_t>());
  }
  entry.type = type.type;
  if (!bits || *bits % 8 != 0 || *bits / 8 != entry.size) {
    return corrupt(fmt::format("shape and data_offsets disagree: {}", shown(name)));
  }
  return Done{};
}

Result<SafetensorsHeader::Entry> read_entry(const json& value, std::string_view name,
                                            std::uint64_t data_begin, std::uint64_t data_size) {
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets") || !value["dtype"].is_string()) {
    return corrupt(fmt::format("a tensor needs dtype, shape and data_offsets: {}", shown(name)));
  }
  const auto dtype = value["dtype"].get<std::string>();
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&](const TypeName& known) { return known.name == dtype; });
  if (type == kTypes.end()) {
    return corrupt(fmt::format("unknown dtype: {} of {}", shown(dtype), shown(name)));
  }
  SafetensorsHeader::Entry entry;
  MUSTER_TRY(read_offsets(value["data_offsets"], data_begin, data_size, name, entry));
  MUSTER_TRY(read_shape(value["shape"], *type, name, entry));
  return entry;
}

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
      return corrupt(fmt::format("tensors {} at byte {}",
                                 begin < reached ? "overlap" : "leave a hole", reached));
    }
    reached = end;
  }
  if (reached != file_size) {
    return corrupt(fmt::format("the tensors end at byte {}, the file at {}", reached, file_size));
  }
  return Done{};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> head,
                                                   std::uint64_t file_size) {
  if (head.size() < kLengthBytes || file_size < kLengthBytes) {
    return corrupt(fmt::format("shorter than the 8 bytes of the header length: {}", file_size));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8U | std::to_integer<std::uint64_t>(head[i]);
  }
  if (length > kHeaderBytesMax || length > file_size - kLengthBytes ||
      length > head.size() - kLengthBytes) {
    return corrupt(
        fmt::format("header length passes the end of the file: {} of {} bytes", length, file_size));
  }

  const auto* text = reinterpret_cast<const char*>(head.data()) + kLengthBytes;
  const auto root = json::parse(text, text + length, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return corrupt("the header is not a JSON object");

  SafetensorsHeader header;
  const auto data_begin = kLengthBytes + length;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return corrupt("__metadata__ is not an object");
      for (const auto& [key, item] : value.items()) {
        if (!item.is_string()) return corrupt("__metadata__ holds something other than strings");
        header.metadata.emplace(key, item.get<std::string>());
      }
      continue;
    }
    header.tensors.emplace(name,
                           MUSTER_TRY(read_entry(value, name, data_begin, file_size - data_begin)));
  }
  MUSTER_TRY(check_coverage(header, data_begin, file_size));
  return header;
}

std::string_view tensor_type_name(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

bool is_plain_float(TensorType type) {
  return type == TensorType::F16 || type == TensorType::BF16 || type == TensorType::F32 ||
         type == TensorType::F64;
}

Result<ModelWeights> ModelWeights::open(const fs::path& model_folder) {
  ModelWeights weights;
  for (const auto& name : MUSTER_TRY(weight_files(model_folder))) {
    const auto path = model_folder / name;
    auto file = MUSTER_TRY(MappedFile::open(path));
    const auto header = parse_safetensors_header(file.bytes(), file.bytes().size());
    if (!header) return corrupt(fmt::format("{}: {}", path.string(), header.error().message));
    for (const auto& [tensor, entry] : header->tensors) {
      TensorView view{entry.type, entry.shape, file.bytes().subspan(entry.begin, entry.size)};
      if (!weights.tensors_.emplace(tensor, std::move(view)).second) {
        return corrupt(
            fmt::format("{}: another shard has this tensor too: {}", path.string(), shown(tensor)));
      }
    }
    weights.files_.push_back(std::move(file));
  }
  return weights;
}

const TensorView* ModelWeights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace muster
