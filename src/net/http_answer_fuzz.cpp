#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http_answer_reader.h"

namespace {

class Kept final : public muster::HttpAnswerParts {
 public:
  void on_head(int status, const muster::HttpHeaders& headers) override {
    text += std::to_string(status);
    for (const auto& [name, value] : headers) text += "\n" + name + ": " + value;
    text += "\n\n";
  }
  void on_body(std::string_view bytes) override { text += bytes; }

  std::string text;
};

// What became of a stream that came in pieces of `piece` bytes.
std::string outcome(std::string_view stream, std::size_t piece) {
  Kept kept;
  muster::HttpAnswerReader reader(kept);
  std::string unread;
  for (std::size_t at = 0; at < stream.size() && !reader.is_done() && !reader.problem();
       at += piece) {
    unread += stream.substr(at, piece);
    unread.erase(0, reader.put(unread));
  }
  reader.put_end();
  if (reader.problem()) return "refused";
  return kept.text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  // The cuts must not matter to an answer that is read.
  const auto whole = outcome(stream, 64 << 10);
  const auto pieces = outcome(stream, 7);
  if (whole != pieces && whole != "refused" && pieces != "refused") std::abort();
  return 0;
}
