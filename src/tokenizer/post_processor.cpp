#include "tokenizer/post_processor.h"

namespace muster {

void PostProcessor::wrap(const PostProcessor& outer) {
  before.insert(before.begin(), outer.before.begin(), outer.before.end());
  after.insert(after.end(), outer.after.begin(), outer.after.end());
}

}  // namespace muster
