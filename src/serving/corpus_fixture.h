#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster {

/// Tests only: a row of a corpus and what stands in its index.
struct CorpusRow {
  std::string text;
  std::vector<float> values;
  std::string fields = {};  // as JSON; empty: none
  std::string id = {};
};

/// Tests only: writes OUT, its index and its record as `muster embed` does, made by the model in
/// `model_folder` as it is now, with mean pooling. kept: the names of --keep.
void write_corpus(const std::filesystem::path& out, const std::filesystem::path& model_folder,
                  const std::vector<std::string>& kept, const std::vector<CorpusRow>& rows);

}  // namespace muster
