#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "modelfile/gguf.h"

namespace muster {

/// The metadata keys of one architecture, by their names without its prefix: "block_count" is
/// "llama.block_count".
///
/// Threads: immutable; the header must outlive it.
class GgufKeys {
 public:
  GgufKeys(const GgufHeader& header, std::string architecture)
      : header_(header), architecture_(std::move(architecture)) {}

  const std::string& architecture() const { return architecture_; }

  /// nullptr when the key is not there.
  const GgufValue* find(std::string_view name) const;

  /// One number, or the number of `layer` where the key holds a list of them.
  /// Errors: Corrupt when it is missing and there is no fallback, or outside `min`..`max`.
  Result<std::uint32_t> number(std::string_view name, std::uint32_t max,
                               std::optional<std::uint32_t> fallback = std::nullopt,
                               std::size_t layer = 0, std::uint32_t min = 1) const;

  /// A float. Errors: Corrupt when it is not one, not finite, or missing without a fallback.
  Result<double> real(std::string_view name, std::optional<double> fallback = std::nullopt) const;

  /// Errors: Corrupt when present and of another type.
  Result<bool> flag(std::string_view name, bool fallback) const;
  Result<std::string> text(std::string_view name, std::string_view fallback) const;

 private:
  Error wrong(std::string_view name, std::uint32_t min, std::uint32_t max) const;

  const GgufHeader& header_;
  std::string architecture_;
};

/// The tensor of a header by its name; nullptr when there is none.
const GgufTensor* find_gguf_tensor(const GgufHeader& header, std::string_view name);

/// general.architecture. Errors: Corrupt when it is missing, no text, or longer than 64 bytes.
Result<std::string> gguf_architecture(const GgufHeader& header);

}  // namespace muster
