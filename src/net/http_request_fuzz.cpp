#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http_request_reader.h"

namespace {

// What became of a stream that came in pieces of `piece` bytes.
std::string outcome(std::string_view stream, std::size_t piece) {
  muster::HttpRequestReader reader({.header_bytes = 1024, .body_bytes = 4096});
  std::string unread;
  for (std::size_t at = 0; at < stream.size() && !reader.is_done() && !reader.refusal();
       at += piece) {
    unread += stream.substr(at, piece);
    unread.erase(0, reader.put(unread));
  }
  if (reader.refusal()) return "refused";
  if (!reader.is_done()) return "unfinished";
  const auto request = reader.take();
  return request.method + " " + request.path + "?" + request.query + "\n" + request.body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  // The cuts must not matter to a request that is read.
  const auto whole = outcome(stream, 64 << 10);
  const auto pieces = outcome(stream, 7);
  if (whole != pieces && whole != "refused" && pieces != "refused") std::abort();
  return 0;
}
