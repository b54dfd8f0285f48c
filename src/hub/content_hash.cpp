// Hashes as the hub names content: SHA-256 for large files, and for small ones git's SHA-1 of a
// blob, which begins with the size and a zero byte. So the size must be known before the first
// byte.

#include "hub/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace muster {

ContentHash::ContentHash(HashKind kind, std::uint64_t size) : context_(EVP_MD_CTX_new()) {
  MUSTER_CHECK(context_ != nullptr);
  const auto* algorithm = kind == HashKind::Sha256 ? EVP_sha256() : EVP_sha1();
  MUSTER_CHECK(EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1);
  if (kind == HashKind::GitBlob) {
    const auto head = fmt::format("blob {}", size);
    update({head.c_str(), head.size() + 1});  // its zero byte too
  }
}

ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;
ContentHash::~ContentHash() = default;

void ContentHash::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

void ContentHash::update(std::string_view bytes) {
  MUSTER_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string ContentHash::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  MUSTER_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace muster
