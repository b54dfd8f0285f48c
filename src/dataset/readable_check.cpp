// First bytes that say: no text, and nothing that is unpacked here.
#include <fmt/format.h>

#include "dataset/compressed_source.h"

namespace muster {
namespace {

Error refused(const std::string& input, std::string_view what) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", input_name(input), what)};
}

}  // namespace

bool wants_more_magic(std::string_view head) {
  using namespace std::string_view_literals;
  constexpr std::size_t kShortMagic = 4;  // of gzip, zstd and zip
  if (head.size() < kShortMagic) return true;
  return head.size() < kMagicSize && (head.starts_with("\xfd"
                                                       "7zX"sv) ||
                                      head.starts_with("BZh"sv) || head.starts_with("PAR1"sv));
}

Status check_readable(std::string_view head, const std::string& input) {
  using namespace std::string_view_literals;
  constexpr std::string_view kPipe =
      "is compressed by {0}, and gzip and zstd are what is read: {1} FILE | muster ... - hands its "
      "text on";
  if (head.starts_with("\xfd"
                       "7zXZ\0"sv)) {
    return refused(input, fmt::format(kPipe, "xz", "xz -dc"));
  }
  const bool is_bzip2 = head.starts_with("BZh") && head.size() > 4 && head[3] >= '1' &&
                        head[3] <= '9' && head.substr(4).starts_with("1AY&SY");
  if (is_bzip2) return refused(input, fmt::format(kPipe, "bzip2", "bzip2 -dc"));
  if (head.starts_with("PK\x03\x04"sv)) {
    return refused(input, "is a zip archive: unpack it, and name the files in it");
  }
  if (head.starts_with("PAR1\x15"sv)) {
    return refused(input, "is a Parquet file: write its texts as .jsonl or .csv first");
  }
  return Done{};
}

}  // namespace muster
