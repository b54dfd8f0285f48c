#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace muster {

/// Writes GGUF bytes field by field, right or wrong, for tests.
///
/// Owner: one test; not thread-safe.
class GgufWriter {
 public:
  template <typename T>
  GgufWriter& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  GgufWriter& text(const std::string& value) {
    number(std::uint64_t{value.size()});
    bytes_ += value;
    return *this;
  }
  GgufWriter& header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    bytes_ += "GGUF";
    return number(version).number(tensors).number(keys);
  }
  GgufWriter& key(const std::string& name, std::uint32_t value) {
    return text(name).number(std::uint32_t{4}).number(value);
  }
  GgufWriter& key(const std::string& name, const std::string& value) {
    return text(name).number(std::uint32_t{8}).text(value);
  }
  GgufWriter& key(const std::string& name, float value) {
    return text(name).number(std::uint32_t{6}).number(value);
  }
  GgufWriter& key(const std::string& name, bool value) {
    return text(name).number(std::uint32_t{7}).number(static_cast<std::uint8_t>(value));
  }
  GgufWriter& key(const std::string& name, const char* value) {
    return key(name, std::string(value));
  }
  GgufWriter& key(const std::string& name, const std::vector<std::string>& values) {
    list(name, 8, values.size());
    for (const auto& value : values) text(value);
    return *this;
  }
  GgufWriter& key(const std::string& name, const std::vector<std::int32_t>& values) {
    list(name, 5, values.size());
    for (const auto value : values) number(value);
    return *this;
  }
  GgufWriter& key(const std::string& name, const std::vector<float>& values) {
    list(name, 6, values.size());
    for (const auto value : values) number(value);
    return *this;
  }
  GgufWriter& tensor(const std::string& name, std::vector<std::uint64_t> shape, std::uint32_t type,
                     std::uint64_t offset) {
    text(name).number(static_cast<std::uint32_t>(shape.size()));
    for (const auto extent : shape) number(extent);
    return number(type).number(offset);
  }
  /// Padding to the alignment, then `size` bytes.
  std::string data(std::size_t size, std::size_t alignment = 32) const {
    auto file = bytes_;
    while (file.size() % alignment != 0) file += '\0';
    return file + std::string(size, '\1');
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void list(const std::string& name, std::uint32_t type, std::size_t count) {
    text(name).number(std::uint32_t{9}).number(type).number(std::uint64_t{count});
  }

  std::string bytes_;
};

}  // namespace muster
