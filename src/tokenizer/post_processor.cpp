#include "tokenizer/post_processor.h"

namespace muster {

bool PostProcessor::is_plain() const {
  return before.empty() && after.empty() && pair && pair->special_count() == 0 &&
         pair->has_segments;
}

void PostProcessor::wrap(const PostProcessor& outer) {
  if (is_plain()) {
    pair = outer.pair;
  } else if (!outer.is_plain()) {
    pair.reset();  // two templates, one within the other
  }
  before.insert(before.begin(), outer.before.begin(), outer.before.end());
  after.insert(after.end(), outer.after.begin(), outer.after.end());
}

}  // namespace muster
