#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/schema.h"

namespace muster {

/// Checks a value against type and range and gives it in its one form ("yes" -> "true", "1500ms"
/// stays, "1.5s" becomes it, "80%" -> "0.8").
///
/// subject: what the message begins with: "muster.yaml:3: precision", "MUSTER_PRECISION",
/// "--precision". Errors: InvalidArgument, naming subject, range or nearest choice, and the value.
Result<std::string> check_value(const Setting& setting, std::string_view value,
                                std::string_view subject);

/// "2s", "1.5s", "500ms", "10m", "1h", "0" as milliseconds; nullopt for anything else.
std::optional<std::uint64_t> parse_milliseconds(std::string_view text);

/// "4096", "64KiB", "256MiB", "1.5GiB", "10GB" as bytes; nullopt for anything else.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// "0.8", "80%": above 0 and at most 1; nullopt for anything else.
std::optional<double> parse_fraction(std::string_view text);

using TextPairs = std::vector<std::pair<std::string, std::string>>;

/// The entries of a map in their order: a piece without "=" belongs to the value before it.
///
/// Errors: InvalidArgument (no "=", an empty key or value, a key twice).
Result<TextPairs> parse_map(std::string_view text, std::string_view subject);

/// "NAME=PATH" and "PATH", with commas between, as names and paths: a path without a name has that
/// of its file without the ending.
///
/// Errors: InvalidArgument (an empty name or path, a name twice).
Result<TextPairs> parse_named_files(std::string_view text, std::string_view subject);

/// The inverse of `parse_map`.
std::string map_text(const TextPairs& pairs);

}  // namespace muster
