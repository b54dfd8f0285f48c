#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/completion/candidates.h"

namespace muster {

/// Adds those of `all` that begin with what is there, behind `head`.
void add_candidates(const std::vector<Candidate>& all, std::string_view begun,
                    std::string_view head, Candidates& out);

/// The same for the part of a list behind its last comma ("cuda:0,cu"); what is in the list already
/// is no candidate again.
void add_list_candidates(std::vector<Candidate> all, std::string_view begun, std::string_view head,
                         Candidates& out);

/// Words that need no explanation.
std::vector<Candidate> plain_candidates(std::span<const std::string> texts);

/// Adds what is known of a kind of word: models, devices, machines, or that it is a path.
void add_words_of(WordKind kind, std::string_view begun, std::string_view head,
                  const CompletionSources& sources, Candidates& out);

}  // namespace muster
