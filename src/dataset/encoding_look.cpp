// Text that is not UTF-8, known by its first bytes. Byte order marks decide first. Without one,
// text of Latin letters in UTF-16 has a NUL in every second byte, which no text in UTF-8 has. Texts
// in UTF-16 without a mark and without such letters are not recognized here; they are left to the
// check of each record for UTF-8.
#include "dataset/encoding_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace muster {
namespace {

using std::string_view_literals::operator""sv;

// Those of UTF-32 first: that of its little-endian form begins with the other's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMarks{{
    {"\xff\xfe\0\0"sv, "UTF-32LE"},
    {"\0\0\xfe\xff"sv, "UTF-32BE"},
    {"\xff\xfe"sv, "UTF-16LE"},
    {"\xfe\xff"sv, "UTF-16BE"},
}};

class CheckedSource final : public ByteSource {
 public:
  CheckedSource(std::unique_ptr<ByteSource> source, std::string input)
      : source_(std::move(source)), input_(std::move(input)) {}

  Result<std::size_t> read(std::span<char> buffer) override {
    const auto count = MUSTER_TRY(source_->read(buffer));
    if (head_.size() < kEncodingHead) {
      head_.append(buffer.data(), std::min(count, kEncodingHead - head_.size()));
      if (const auto encoding = look_for_wide_encoding(head_)) {
        return wide_encoding_refusal(input_, *encoding);
      }
    }
    return count;
  }

  std::uint64_t size_consumed() const override { return source_->size_consumed(); }

 private:
  std::unique_ptr<ByteSource> source_;
  const std::string input_;
  std::string head_;  // what has been read of the first bytes
};

}  // namespace

std::optional<std::string_view> look_for_wide_encoding(std::string_view head) {
  for (const auto& [mark, name] : kMarks) {
    if (head.starts_with(mark)) return name;
  }
  // NUL bytes at the first and at the second place of each pair.
  std::array<std::size_t, 2> nul_counts{};
  const auto pair_count = head.size() / 2;
  for (std::size_t i = 0; i < 2 * pair_count; ++i) nul_counts.at(i % 2) += head[i] == '\0' ? 1 : 0;
  const auto most_are_nul = [&](std::size_t place) {
    return pair_count > 0 && 2 * nul_counts.at(place) > pair_count && nul_counts.at(1 - place) == 0;
  };
  if (most_are_nul(1)) return "UTF-16LE";
  if (most_are_nul(0)) return "UTF-16BE";
  return std::nullopt;
}

Error wide_encoding_refusal(const std::string& input, std::string_view encoding) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: is {}, and texts are read as UTF-8: iconv -f {} -t UTF-8 makes it "
                           "so",
                           input_name(input), encoding, encoding)};
}

std::unique_ptr<ByteSource> refuse_wide_encoding(std::unique_ptr<ByteSource> source,
                                                 std::string input) {
  return std::make_unique<CheckedSource>(std::move(source), std::move(input));
}

}  // namespace muster
