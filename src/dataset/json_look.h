#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

/// What an input looks like that is read as plain lines.
enum class JsonLook : std::uint8_t {
  Text,      // no JSON
  Lines,     // begins with a JSON object on one line
  Document,  // begins with a JSON array, or with an object over several lines
  Open,      // JSON so far, and not enough of it to tell
};

/// Looks at the first bytes of an input. An object counts as JSON from its first key and colon on,
/// whatever follows; an array when it is well formed to its end, with nothing but a line end, a
/// comma or another value behind it: "[1] Smith" and "[Chorus]" are texts.
///
/// is_whole: `head` is all that there is; then the answer is never Open.
JsonLook look_for_json(std::string_view head, bool is_whole);

}  // namespace muster
