#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/content_hash.h"

namespace muster {

/// A file of a repository, as the hub states it.
struct HubFile {
  std::string path;  // "1_Pooling/config.json": relative, without "..", checked
  std::uint64_t size = 0;
  HashKind hash_kind = HashKind::GitBlob;
  std::string hash;  // lower-case hexadecimal; also the name of its blob in the cache
};

/// A repository at one commit.
struct HubListing {
  std::string commit;  // 40 hexadecimal digits
  std::vector<HubFile> files;
};

/// Reads the answer of `GET /api/models/ID/revision/REVISION?blobs=true`.
///
/// Errors: Corrupt, naming the field: no JSON, no commit, a path that leaves the folder or holds a
/// control character, the same path twice, a size or hash that is missing or impossible, more files
/// than a repository has. Threads: pure.
/// Source: huggingface_hub 2.x, hf_api.py, `ModelInfo`, `RepoSibling` and `BlobLfsInfo`.
Result<HubListing> parse_hub_listing(std::string_view text);

/// Whether a path stays below the folder that it is put in, and is fit for a line of a terminal.
bool is_safe_hub_path(std::string_view path);

/// Hexadecimal digits of a commit: git's SHA-1.
inline constexpr std::size_t kCommitDigits = 40;

/// Whether `text` is `digits` lower-case hexadecimal digits.
bool is_hex(std::string_view text, std::size_t digits);

}  // namespace muster
