#pragma once

#include <span>
#include <string>

namespace muster {

/// The words as a POSIX shell reads them back: those with anything special in single quotes.
std::string join_shell_words(std::span<const std::string> words);

}  // namespace muster
