// Typed access to the keys of one architecture. Whatever a file states is bounded by the
// caller's `max` here, so that sizes computed from it cannot overflow. Some keys hold one number
// for all layers or a list with one for each; both forms answer the same question.

#include "modelfile/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

// Keys of the metadata with their types checked. Writers differ in the width and the sign of their
// integers, so any integer type is taken for a count; a float is only taken for a float.

namespace muster {
const GgufValue* GgufKeys::find(std::string_view name) const {
  const auto found = header_.metadata.find(fmt::format("{}.{}", architecture_, name));
  return found == header_.metadata.end() ? nullptr : &found->second;
}

Result<std::uint32_t> GgufKeys::number(std::string_view name, std::uint32_t max,
                                       std::optional<std::uint32_t> fallback, std::size_t layer,
                                       std::uint32_t min) const {
  const auto* value = find(name);
  if (value == nullptr && fallback) return *fallback;
  std::uint64_t read = 0;
  if (value == nullptr) {
    return corrupt_error(fmt::format("{}.{} is missing", architecture_, name));
  }
  if (const auto* list = std::get_if<GgufList>(value)) {
    if (layer >= list->numbers.size() || list->numbers[layer] < 0) return wrong(name, min, max);
    read = static_cast<std::uint64_t>(list->numbers[layer]);
  } else if (const auto* plain = std::get_if<std::uint64_t>(value)) {
    read = *plain;
  } else if (const auto* whole = std::get_if<std::int64_t>(value); whole && *whole >= 0) {
    read = static_cast<std::uint64_t>(*whole);
  } else {
    return wrong(name, min, max);
  }
  if (read < min || read > max) return wrong(name, min, max);
  return static_cast<std::uint32_t>(read);
}

Result<double> GgufKeys::real(std::string_view name, std::optional<double> fallback) const {
  const auto* value = find(name);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) return corrupt_error(fmt::format("{}.{} is missing", architecture_, name));
  const auto* number = std::get_if<double>(value);
  if (number != nullptr && std::isfinite(*number)) return *number;
  return corrupt_error(fmt::format("{}.{} is not a finite float", architecture_, name));
}

Result<bool> GgufKeys::flag(std::string_view name, bool fallback) const {
  const auto* value = find(name);
  if (value == nullptr) return fallback;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  return corrupt_error(fmt::format("{}.{} is not true or false", architecture_, name));
}

Result<std::string> GgufKeys::text(std::string_view name, std::string_view fallback) const {
  const auto* value = find(name);
  if (value == nullptr) return std::string(fallback);
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  return corrupt_error(fmt::format("{}.{} is not a text", architecture_, name));
}

Error GgufKeys::wrong(std::string_view name, std::uint32_t min, std::uint32_t max) const {
  return corrupt_error(
      fmt::format("{}.{} is not an integer of {} to {}", architecture_, name, min, max));
}

const GgufTensor* find_gguf_tensor(const GgufHeader& header, std::string_view name) {
  const auto found = std::find_if(header.tensors.begin(), header.tensors.end(),
                                  [&](const GgufTensor& tensor) { return tensor.name == name; });
  return found == header.tensors.end() ? nullptr : &*found;
}

Result<std::string> gguf_architecture(const GgufHeader& header) {
  const auto found = header.metadata.find("general.architecture");
  const auto* name =
      found == header.metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (name == nullptr || name->empty() || name->size() > 64) {
    return corrupt_error("general.architecture is missing");
  }
  return *name;
}

}  // namespace muster
