#pragma once

// Of two ways to name protocols every libcurl of the last twenty years has the older one.
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include "base/result.h"

namespace muster {

/// The functions of libcurl that are used, found in the library at run time: linked, it and the
/// thirty libraries that it brings would make every start of muster several times slower.
///
/// Threads: immutable. Source: curl/curl.h; names and types have not changed since 7.32 (2013).
struct CurlLibrary {
  CURL* (*easy_init)();
  CURLcode (*easy_setopt)(CURL*, CURLoption, ...);
  CURLcode (*easy_perform)(CURL*);
  void (*easy_cleanup)(CURL*);
  void (*easy_reset)(CURL*);
  const char* (*easy_strerror)(CURLcode);
  curl_slist* (*slist_append)(curl_slist*, const char*);
  void (*slist_free_all)(curl_slist*);
  /// 0x073a00 for 7.58.0: of the library that was found, not of the header.
  unsigned version;

  /// Opens the library; it stays open until the process ends.
  ///
  /// Errors: Unavailable (no libcurl on this machine, or one that lacks a function). Threads: call
  /// before others are started, as libcurl's own start asks for.
  static Result<CurlLibrary> open();
};

/// Whether this libcurl may be given a token: an older one sends a header of ours to every host
/// that it is redirected to. Source: CVE-2018-1000007, mended in 7.58.0.
///
/// Errors: Unsupported, naming both versions.
Status check_keeps_tokens(unsigned version);

}  // namespace muster
