#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jobs/embed.h"

namespace muster {

/// Embeds a few texts with the model, devices, precision and prompt of `options` (its input, out,
/// resume and skip_bad are not looked at) and gives their vectors back in order, [texts][dim]
/// float32.
///
/// Errors: those of `embed_corpus` without the files.
Result<std::vector<std::vector<float>>> embed_texts(const EmbedOptions& options,
                                                    std::span<const std::string> texts,
                                                    const CorpusEvents& events, const Clock& clock);

}  // namespace muster
