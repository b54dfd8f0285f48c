#include "engine/models/cuda_encoder.h"

namespace muster::engine {

Status open_cuda() { return Error{ErrorKind::Unsupported, "no CUDA"}; }
std::string cuda_class() { return "none"; }
Result<std::unique_ptr<EncoderModel>> make_cuda_encoder(const EncoderSpec&, const EncoderWeights&,
                                                        Precision) {
  return Error{ErrorKind::Unsupported, "no CUDA"};
}

}  // namespace muster::engine
