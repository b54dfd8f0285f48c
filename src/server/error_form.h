#pragma once

#include <cstdint>

namespace muster {

/// How the errors of a route are written: as the clients of its API read them.
enum class ErrorForm : std::uint8_t {
  OpenAi,  // {"error": {"message", "type", "param", "code"}}
  Tei,     // {"error": "…", "error_type": "Validation"}: text-embeddings-inference
  Ollama,  // {"error": "…"}
  Cohere,  // {"message": "…"}
};

}  // namespace muster
