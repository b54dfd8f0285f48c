#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

/// Split patterns of well-known models that are written out by hand, for speed. Each of them
/// matches at every place, so the pieces cover the whole text.
enum class KnownPattern : std::uint8_t {
  Gpt2,    // GPT-2, RoBERTa; the one that ByteLevel itself uses
  Llama3,  // Llama 3, cl100k: up to three digits at once
  Qwen2,   // Qwen 2: each digit alone
};

/// Source: encoder.py of GPT-2; tokenizer.json of Meta-Llama-3-8B and of Qwen2-7B.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// nullopt for any other pattern, which goes to Regex.
std::optional<KnownPattern> known_pattern(std::string_view pattern);

/// Where the piece that begins at `begin` ends; `begin` is within the text, the result above it.
std::size_t piece_end(KnownPattern pattern, std::string_view text, std::size_t begin);

}  // namespace muster
