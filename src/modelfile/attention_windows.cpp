// Which layers attend to a window only. The size and the pattern are separate facts in a config,
// so they are read separately and joined at the end. An absent key and a null mean different
// things: absent takes the default of the family's class, null means no window. A wrong window
// would not fail, it would give other text on long inputs, so any other kind of layer is refused
// by name.

#include "modelfile/attention_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "modelfile/model_limits.h"
#include "modelfile/shown_name.h"

namespace muster {
namespace {

// The window of the layers that slide; 0 where none does.
Result<std::uint32_t> parse_window(const JsonFields& config, ModelFamily family) {
  std::uint32_t fallback = 0;
  switch (family) {
    case ModelFamily::Qwen2:
    case ModelFamily::Qwen3:
      if (!MUSTER_TRY(config.boolean_or("use_sliding_window", false))) return 0U;
      [[fallthrough]];
    case ModelFamily::Mistral:
    case ModelFamily::Gemma2:
    case ModelFamily::Gemma3:
      // Their class has a window where the key is absent; null is none.
      fallback = config.states("sliding_window") ? 0 : 4096;
      break;
    case ModelFamily::Phi3:
    case ModelFamily::Mixtral:
      break;
    default:
      return 0U;  // the family's code reads no window
  }
  const auto window = MUSTER_TRY(config.positive_or("sliding_window", kRowsMax, fallback));
  // Gemma 3 as an encoder looks to both sides. Source: configuration_gemma3.py, __post_init__.
  if (family == ModelFamily::Gemma3 && window > 0 &&
      MUSTER_TRY(config.boolean_or("use_bidirectional_attention", false))) {
    return window / 2 + 1;
  }
  return window;
}

// `max_window_layers`: the layers before it are full; 0 is a value.
Result<std::uint32_t> parse_first_window(const JsonFields& config) {
  const auto* value = config.find("max_window_layers");
  if (value == nullptr) return 28U;
  if (!value->is_number_unsigned()) return config.wrong("max_window_layers", "an integer");
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value->get<std::uint64_t>(), kLayersMax));
}

Result<std::vector<bool>> parse_layer_types(const JsonFields& config, std::uint32_t layers) {
  const auto& list = *config.find("layer_types");
  if (!list.is_array() || list.size() != layers) {
    return config.wrong("layer_types", fmt::format("a list of {} names", layers));
  }
  std::vector<bool> slides;
  for (const auto& item : list) {
    const auto name = item.is_string() ? item.get<std::string>() : std::string();
    if (name != "full_attention" && name != "sliding_attention") {
      return Error{ErrorKind::Unsupported,
                   fmt::format("config.json: layer_types holds neither full_attention nor "
                               "sliding_attention: {}",
                               shown_name(name))};
    }
    slides.push_back(name == "sliding_attention");
  }
  return slides;
}

/// Which layers have the window where `layer_types` does not say so.
Result<std::vector<bool>> family_pattern(const JsonFields& config, ModelFamily family,
                                         std::uint32_t layers) {
  std::uint32_t period = 0;  // every period-th layer is full
  std::uint32_t first = 0;   // and those before the first that slides
  if (family == ModelFamily::Gemma2) period = 2;
  if (family == ModelFamily::Gemma3) {
    period = MUSTER_TRY(config.positive_or("sliding_window_pattern", kLayersMax, 6));
  }
  if (family == ModelFamily::Qwen2 || family == ModelFamily::Qwen3) {
    first = MUSTER_TRY(parse_first_window(config));
  }
  std::vector<bool> slides;
  for (std::uint32_t i = 0; i < layers; ++i) {
    slides.push_back(i >= first && (period == 0 || (i + 1) % period != 0));
  }
  return slides;
}

}  // namespace

Result<std::vector<std::uint32_t>> parse_windows(const JsonFields& config, ModelFamily family,
                                                 std::uint32_t layers) {
  const auto window = MUSTER_TRY(parse_window(config, family));
  const auto slides =
      MUSTER_TRY(config.has("layer_types") ? parse_layer_types(config, layers)
                                           : family_pattern(config, family, layers));
  std::vector<std::uint32_t> windows;
  for (const bool does_slide : slides) windows.push_back(does_slide ? window : 0);
  return windows;
}

}  // namespace muster
