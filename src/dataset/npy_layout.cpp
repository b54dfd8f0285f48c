// The header of an npy file is a Python literal. A general parser of Python is not needed: numpy
// writes a dict of three known keys. Versions 1 to 3 differ in the width of the header's size (2 or
// 4 bytes) and in its encoding. Source: numpy.lib.format, "Format Version 1.0" to "3.0".

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

#include "dataset/vector_layout.h"

namespace muster {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

Error corrupt(std::string_view why) {
  return Error{ErrorKind::Corrupt, fmt::format("broken npy header: {}", why)};
}

Error unsupported(std::string_view what) {
  return Error{ErrorKind::Unsupported,
               fmt::format("vectors are float32 [rows, dim] in C order: {}", what)};
}

struct Header {
  std::optional<std::string_view> descr;
  std::optional<bool> is_fortran;
  std::optional<std::vector<std::uint64_t>> shape;
};

// Reads the one Python literal that numpy writes: a dict of a string, a bool and a tuple of
// integers.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<Header> parse() {
    if (!accept('{')) return corrupt("no dict");
    while (!accept('}')) {
      const auto key = string();
      if (!key || !accept(':')) return corrupt("no key");
      MUSTER_TRY(value(*key));
      skip_space();
      if (!accept(',') && !text_.starts_with('}')) return corrupt("no comma");
    }
    skip_space();
    if (!text_.empty()) return corrupt("text behind the dict");
    return header_;
  }

 private:
  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n'))
      text_.remove_prefix(1);
  }

  bool accept(char wanted) {
    skip_space();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool accept_word(std::string_view wanted) {
    skip_space();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }

  std::optional<std::string_view> string() {
    for (const char quote : {'\'', '"'}) {
      if (!accept(quote)) continue;
      const auto end = text_.find(quote);
      if (end == std::string_view::npos) return std::nullopt;
      const auto content = text_.substr(0, end);
      text_.remove_prefix(end + 1);
      return content;
    }
    return std::nullopt;
  }

  Status value(std::string_view key) {
    if (key == "descr") {
      skip_space();
      if (text_.starts_with('[')) return unsupported("the dtype is a record");
      header_.descr = string();
      if (!header_.descr) return corrupt("descr is no string");
    } else if (key == "fortran_order") {
      const bool is_true = accept_word("True");
      if (!is_true && !accept_word("False")) return corrupt("fortran_order is not True or False");
      header_.is_fortran = is_true;
    } else if (key == "shape") {
      header_.shape = MUSTER_TRY(tuple());
    } else {
      return corrupt("an unknown key");
    }
    return Done{};
  }

  Result<std::vector<std::uint64_t>> tuple() {
    constexpr std::size_t kDimensionsMax = 64;  // numpy 2.0's NPY_MAXDIMS
    std::vector<std::uint64_t> sizes;
    if (!accept('(')) return corrupt("shape is no tuple");
    while (!accept(')')) {
      std::uint64_t size = 0;
      skip_space();
      const auto parsed = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (parsed.ec != std::errc() || sizes.size() == kDimensionsMax) return corrupt("shape");
      sizes.push_back(size);
      text_.remove_prefix(static_cast<std::size_t>(parsed.ptr - text_.data()));
      skip_space();
      if (!accept(',') && !text_.starts_with(')')) return corrupt("shape");
    }
    return sizes;
  }

  std::string_view text_;
  Header header_;
};

std::uint64_t byte_at(std::string_view head, std::size_t at) {
  return static_cast<unsigned char>(head[at]);
}

// Bytes before the text of the head, whose size stands in the last two or four of them.
std::uint64_t prefix_size(std::string_view head) { return byte_at(head, 6) == 1 ? 10 : 12; }

std::uint64_t text_size(std::string_view head) {
  const std::uint64_t low = byte_at(head, 8) | byte_at(head, 9) << 8;
  if (prefix_size(head) == 10) return low;
  return low | byte_at(head, 10) << 16 | byte_at(head, 11) << 24;
}

}  // namespace

std::uint64_t npy_head_size(std::string_view begin) {
  if (begin.size() < kHeadBegin) return begin.size();
  return prefix_size(begin) + text_size(begin);
}

Result<VectorLayout> parse_npy(std::string_view head, std::uint64_t file_size) {
  if (!head.starts_with(kMagic) || head.size() < kHeadBegin) {
    return corrupt("not an npy file");
  }
  const auto version = byte_at(head, 6);
  if (version < 1 || version > 3 || byte_at(head, 7) != 0) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("npy version {}.{}", version, byte_at(head, 7))};
  }
  const std::uint64_t prefix = prefix_size(head);
  const std::uint64_t size = text_size(head);
  if (size > file_size - prefix || size > head.size() - prefix) {
    return corrupt("longer than the file");
  }
  const auto header = MUSTER_TRY(HeaderParser(head.substr(prefix, size)).parse());
  if (!header.descr || !header.is_fortran || !header.shape) {
    return corrupt("descr, fortran_order or shape is missing");
  }
  if (*header.descr != "<f4") return unsupported(fmt::format("the dtype is {}", *header.descr));
  if (*header.is_fortran) return unsupported("the order is Fortran's");
  if (header.shape->size() != 2) {
    return unsupported(fmt::format("the shape has {} dimensions", header.shape->size()));
  }
  const std::uint64_t offset = prefix + size;
  return checked_layout((*header.shape)[0], (*header.shape)[1], offset, file_size - offset);
}

}  // namespace muster
