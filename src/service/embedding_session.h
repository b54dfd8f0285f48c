#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/coordinator.h"
#include "modelfile/model_folder.h"
#include "service/embed.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// Turns a text into the token ids that the model sees: prompt, lower case where the model asks for
/// it, special tokens, cut at the limit.
///
/// Threads: not thread-safe (it owns the tokenizer's scratch); owned by one loop.
class TextEncoder {
 public:
  TextEncoder(std::unique_ptr<const Tokenizer> tokenizer, std::string prompt, bool lowercase,
              std::uint32_t length_max);

  /// text: valid UTF-8. Replaces `ids`.
  Tokenizer::Encoded encode(std::string_view text, std::vector<TokenId>& ids);

  std::uint32_t length_max() const { return length_max_; }

 private:
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Tokenizer::Scratch, void (*)(Tokenizer::Scratch*)> scratch_;
  const std::string prompt_;
  const bool lowercase_;
  const std::uint32_t length_max_;
  std::string buffer_;
};

/// A model on its way onto all devices: what one run of `embed` or one query needs to know.
struct EmbeddingSession {
  ModelFolder folder;
  std::string model_hash;
  Pooling pooling = Pooling::Mean;
  bool normalize = false;
  Precision precision = Precision::Fp32;
  std::string precision_reason;
  std::string equality_class;
  std::string prompt_name;  // empty: none
  std::unique_ptr<TextEncoder> text_encoder;
  std::unique_ptr<Coordinator> coordinator;  // greeted, loading
};

/// Finds and reads the model, starts a worker for each device, settles the precision (measuring it
/// once for this model and processor) and tells the workers to load.
///
/// Errors: those of `find_model`, `read_model_folder`, `Tokenizer::load` and `Coordinator`;
/// InvalidArgument for a prompt that the model does not have or a length above its maximum;
/// Cancelled.
Result<EmbeddingSession> open_session(const EmbedOptions& options, CoordinatorEvents events,
                                      const Clock& clock, const std::function<bool()>& cancelled);

/// "cls", "mean", "max", "last".
std::string_view pooling_name(Pooling pooling);

}  // namespace muster
