#pragma once

#include <string_view>
#include <vector>

#include "server/embedding_format.h"
#include "server/json_body.h"

namespace muster {

/// "float", "base64", "int8", "uint8", "binary", "ubinary".
///
/// format: any but Raw.
std::string_view embedding_type_name(EmbeddingFormat format);

/// Reads one such name or a list of them, each at most once.
///
/// Errors: 400. Source: Cohere, API reference v2, "Embed", embedding_types; Jina AI, Embeddings
/// API, embedding_type.
ApiStatus read_embedding_types(JsonValue& value, std::string_view name,
                               std::vector<EmbeddingFormat>& formats);

}  // namespace muster
