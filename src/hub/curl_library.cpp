// libcurl is found at run time and only when a pull needs it: linked, its libraries would slow down
// every start. All functions are looked up before the first is called, so a library that lacks one
// is refused whole. It stays open until the process ends, so there is no order of closing to keep.

#include "hub/curl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace muster {
namespace {

// Debian's two flavours; other systems have the first name.
constexpr std::array<const char*, 2> kNames{"libcurl.so.4", "libcurl-gnutls.so.4"};

void* open_any() {
  for (const char* name : kNames) {
    if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL); handle != nullptr) return handle;
  }
  return nullptr;
}

template <typename Function>
Status find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (function != nullptr) return Done{};
  return Error{ErrorKind::Unavailable, fmt::format("libcurl has no function {}", name)};
}

}  // namespace

Result<CurlLibrary> CurlLibrary::open() {
  void* handle = open_any();
  if (handle == nullptr) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("{} is not on this machine: install libcurl (Debian: apt-get install "
                             "libcurl4)",
                             kNames.front())};
  }
  CurlLibrary curl{};
  CURLcode (*global_init)(long) = nullptr;  // NOLINT(google-runtime-int): libcurl's own type
  MUSTER_TRY(find(handle, "curl_global_init", global_init));
  MUSTER_TRY(find(handle, "curl_easy_init", curl.easy_init));
  MUSTER_TRY(find(handle, "curl_easy_setopt", curl.easy_setopt));
  MUSTER_TRY(find(handle, "curl_easy_perform", curl.easy_perform));
  MUSTER_TRY(find(handle, "curl_easy_cleanup", curl.easy_cleanup));
  MUSTER_TRY(find(handle, "curl_easy_reset", curl.easy_reset));
  MUSTER_TRY(find(handle, "curl_easy_strerror", curl.easy_strerror));
  MUSTER_TRY(find(handle, "curl_slist_append", curl.slist_append));
  MUSTER_TRY(find(handle, "curl_slist_free_all", curl.slist_free_all));
  curl_version_info_data* (*version_info)(CURLversion) = nullptr;
  MUSTER_TRY(find(handle, "curl_version_info", version_info));
  curl.version = version_info(CURLVERSION_FIRST)->version_num;
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return Error{ErrorKind::Unavailable, "libcurl does not start"};
  }
  return curl;
}

Status check_keeps_tokens(unsigned version) {
  constexpr unsigned kMended = 0x073a00;
  if (version >= kMended) return Done{};
  return Error{
      ErrorKind::Unsupported,
      fmt::format("libcurl {}.{}.{} would send the hub's token to other hosts too: install "
                  "7.58.0 or newer, or pull without a token",
                  version >> 16U, version >> 8U & 0xFFU, version & 0xFFU)};
}

}  // namespace muster
