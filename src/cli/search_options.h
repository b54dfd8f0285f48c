#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "jobs/ranking.h"

namespace muster {

/// What `muster search` is asked, before anything is opened but a file of questions.
struct SearchOptions {
  std::filesystem::path out;
  std::vector<std::string> queries;  // empty: standard input or the file had none
  RankOptions rank;
  std::string filter;  // empty: none
};

/// The flags of `muster search` that say what is found.
std::vector<FlagGroup> search_flag_groups();

/// Flags and words as options: the questions are the words behind OUT, "-" being the lines of
/// standard input, and then the records of --queries.
///
/// Errors: InvalidArgument for a number out of range, no question or more than a thousand; those of
/// TextReader.
Result<SearchOptions> search_options(const CommandContext& context);

}  // namespace muster
