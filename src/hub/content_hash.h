#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

// OpenSSL's type, so that its headers stay inside.
struct evp_md_ctx_st;

namespace muster {

/// What the hub names a file's content by.
enum class HashKind : std::uint8_t {
  Sha256,   // of a large file: SHA-256 of its bytes, as Git LFS has it
  GitBlob,  // of a small one: SHA-1 of "blob SIZE\0" and its bytes, as git has it
};

/// The hash of a file, piece by piece.
///
/// Threads: not thread-safe; one per file.
/// Source: FIPS 180-4; Git, "Git Internals - Git Objects"; Git LFS, docs/spec.md.
class ContentHash {
 public:
  /// size: of the whole file, which is a part of a git blob's hash.
  ContentHash(HashKind kind, std::uint64_t size);
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  void update(std::string_view bytes);

  /// In lower-case hexadecimal digits; nothing is added afterwards.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace muster
