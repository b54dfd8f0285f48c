#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace muster {

/// How the vectors of a finished run were made: the file `x.run.json` beside `x.npy`. A query must
/// be made the same way to be compared with them.
struct RunRecord {
  std::string model;  // absolute path of the folder
  std::string precision;
  std::string pooling;
  bool normalize = false;
  std::uint32_t length_max = 0;
};

/// Errors: NotFound when there is none, saying what to do; Corrupt when it is not what `embed`
/// writes.
Result<RunRecord> read_run_record(const std::filesystem::path& out);

}  // namespace muster
