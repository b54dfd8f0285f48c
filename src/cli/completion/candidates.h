#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace muster {

/// A word that a shell may put in, and what it is.
struct Candidate {
  std::string text;
  std::string help = {};
};

/// What a shell may put in the place of one word of a command line.
struct Candidates {
  enum class Paths : std::uint8_t {
    None,
    Files,
    Folders,
    Models,  // folders and .gguf files
  };

  std::vector<Candidate> words;  // each begins with what is there already
  Paths paths = Paths::None;     // the shell's own names of files come with them
  bool goes_on = false;          // no blank behind: a list may have more
};

/// What only this machine knows; each is asked when it is wanted, as it may take a moment.
struct CompletionSources {
  std::function<std::vector<Candidate>()> devices;          // "cuda:1"
  std::function<std::vector<std::string>()> cached_models;  // ids of the local hub cache
};

/// What may stand in the place of the last of `words`, which are those behind "muster"; it may be
/// empty, or the beginning of something. From the tables that make `--help`: commands, verbs,
/// flags, the values of settings and flags that have a fixed choice, devices, models, machines. A
/// flag that is there already is left out, unless it counts again.
///
/// Threads: pure but for `sources`.
Candidates candidates(std::span<const Command> commands, std::span<const std::string> words,
                      const CompletionSources& sources);

}  // namespace muster
