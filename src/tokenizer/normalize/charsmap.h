#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// The rules of sentencepiece's normaliser, compiled: texts and what each becomes.
///
/// Threads: immutable.
/// Source: sentencepiece, Normalizer::DecodePrecompiledCharsMap (u32 size of the trie, the trie,
/// the contents, each with a NUL behind it); darts-clone, DoubleArrayUnit; the crate
/// spm_precompiled.
class Charsmap {
 public:
  /// Errors: Corrupt for a map that is cut off, has no trie, or whose contents are not UTF-8.
  static Result<Charsmap> parse(std::string_view bytes);

  /// What the shortest key at the front of `text` becomes; nullopt if no key is there, or if the
  /// map points outside of itself (the library ends the process there).
  std::optional<std::string_view> find(std::string_view text) const;

  /// Whether any key begins with this byte.
  bool has_key_from(char byte) const;

  /// The longest content in bytes.
  std::size_t content_size_max() const { return content_size_max_; }

 private:
  /// The unit behind `unit`, which is at `index`, for one more byte; nullopt if there is none.
  std::optional<std::size_t> child_of(std::size_t index, unsigned char byte) const;
  std::optional<std::string_view> content_at(std::size_t place) const;

  std::vector<std::uint32_t> units_;
  std::string contents_;
  std::size_t content_size_max_ = 0;
};

/// The bytes behind `text`, in the alphabet of RFC 4648, section 4, padded.
///
/// Errors: Corrupt for anything else.
Result<std::string> decode_base64(std::string_view text);

}  // namespace muster
