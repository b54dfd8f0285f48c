// JSON strings are appended to what is there, a run of plain bytes at a time, since most texts need
// few escapes. The output is valid UTF-8 whatever comes in: each byte that is not becomes U+FFFD.

#include "dataset/json_text.h"

#include "base/text.h"

namespace muster {
namespace {

void append_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::size_t plain = 0;  // where the run begins that needs no escape
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text.substr(plain, i - plain));
    plain = i + 1;
    out += '\\';
    if (byte == '"' || byte == '\\') {
      out += static_cast<char>(byte);
    } else if (byte == '\n') {
      out += 'n';
    } else if (byte == '\t') {
      out += 't';
    } else {
      out += "u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 0xF];
    }
  }
  out.append(text.substr(plain));
}

}  // namespace

void append_json_string(std::string_view text, std::string& out) {
  out += '"';
  while (const auto bad = invalid_utf8_at(text)) {
    append_escaped(text.substr(0, *bad), out);
    out += "\xef\xbf\xbd";
    text.remove_prefix(*bad + 1);
  }
  append_escaped(text, out);
  out += '"';
}

}  // namespace muster
