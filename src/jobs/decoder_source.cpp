// Which models generate: that is known by the name's end or by config.json, before any weight is
// read.

#include "jobs/decoder_source.h"

#include <fmt/format.h>

#include "base/file.h"
#include "modelfile/decoder_config.h"
#include "modelfile/model_folder.h"

namespace muster {

Result<std::filesystem::path> find_decoder_source(const std::string& model) {
  if (model.ends_with(".gguf")) {
    MUSTER_TRY(check_regular_file(model));
    return std::filesystem::path(model);
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(model, ignored)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: a model is a .gguf file or a folder", model)};
  }
  return find_model(model, ModelUse::Generate);
}

bool names_decoder(const std::string& model) {
  if (model.ends_with(".gguf")) return true;
  const auto source = find_decoder_source(model);
  return source && read_decoder_spec(*source);
}

}  // namespace muster
