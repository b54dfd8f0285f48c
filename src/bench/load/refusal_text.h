#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

/// Bytes of a refusal that are kept to be read; a longer one is no error body.
inline constexpr std::size_t kRefusalBytesMost = 16 << 10;

/// The server's own sentence in the JSON body of a refusal, in one line of at most 300 bytes and
/// "…", with control characters escaped ("\x1b"); empty where it has none: `error.message` (OpenAI,
/// llama-server), `error` as a text (Ollama, text-embeddings-inference), `detail` as a text or
/// the first of a list, with its field (FastAPI), `message` (older vLLM).
///
/// Source: OpenAI API reference, "Error codes"; Ollama, docs/api.md; FastAPI, "Handling Errors".
/// Threads: pure.
std::string refusal_text(std::string_view body);

}  // namespace muster
