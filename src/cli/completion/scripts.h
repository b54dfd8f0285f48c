#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/completion/candidates.h"

namespace muster {

/// "bash", "zsh", "fish".
std::vector<std::string> shell_names();

/// What makes a shell complete the words of `muster`, to be sourced or put where the shell looks
/// for it; nullopt for a shell that is not known. It asks `muster completion words`, so it needs no
/// change when muster changes.
std::optional<std::string_view> completion_script(std::string_view shell);

/// Candidates as the scripts read them: a line "TEXT<tab>HELP" each; before them `:files`,
/// `:folders` or `:models` where the shell adds its own names, `:goes-on` where no blank belongs
/// behind.
std::string candidate_lines(const Candidates& candidates);

}  // namespace muster
