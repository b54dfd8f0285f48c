#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "config/foreign_names.h"

namespace muster {

/// A variable of another program that is set, and its row of the table.
struct FoundForeign {
  const ForeignName* row = nullptr;
  std::string name;
  std::string value;
};

/// "GPU_COUNT must be a whole number from 0 to 4096: "two"".
Error invalid_foreign(const std::string& name, std::string_view must, const std::string& value);

/// What is asked for and not done: the names of each reason, in the order of the table.
class UnmetNames {
 public:
  /// `reason` must outlive this.
  void add(std::string_view reason, std::string name);

  /// One sentence with all of them, or none.
  std::vector<std::string> warnings() const;

 private:
  std::vector<std::string_view> reasons_;
  std::map<std::string, std::vector<std::string>> names_;  // by reason
};

/// "0,2" as "cuda:0,cuda:2". Errors: InvalidArgument for what is no list of numbers.
Result<std::string> foreign_gpu_list(const FoundForeign& found);

/// GPU_COUNT, PRIMARY_GPU_ID and SECONDARY_GPU_IDS as one list of devices; nullopt where none is
/// set, or they ask for what happens anyhow. The count alone takes the first GPUs, 0 of them all
/// that there are; the ids name them, and the count must then be theirs.
///
/// Errors: InvalidArgument for a value that is no number of GPUs, and where they disagree.
Result<std::optional<GivenValue>> chosen_gpus(const std::vector<FoundForeign>& all,
                                              UnmetNames& unmet);

}  // namespace muster
