#include "service/query.h"

#include <cstring>
#include <optional>
#include <utility>

#include "service/embedding_session.h"

namespace muster {

Result<std::vector<std::vector<float>>> embed_texts(const EmbedOptions& options,
                                                    std::span<const std::string> texts,
                                                    const EmbedEvents& events, const Clock& clock) {
  std::vector<std::vector<float>> vectors(texts.size());
  std::optional<Error> failed;
  const CoordinatorEvents on{.on_row =
                                 [&](ItemKey key, std::span<const std::byte> row) {
                                   vectors[key].resize(row.size() / sizeof(float));
                                   std::memcpy(vectors[key].data(), row.data(), row.size());
                                 },
                             .on_item_failed = [&](ItemKey, const Error& error) { failed = error; },
                             .on_notice = events.on_notice};
  auto session = MUSTER_TRY(open_session(options, on, clock, [] { return false; }));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<TokenId> ids;
    const auto encoded = session.model.text_encoder->encode(texts[i], ids);
    session.coordinator->submit({.key = i, .token_count = encoded.token_count}, std::move(ids));
  }
  while (session.coordinator->pending_count() > 0) {
    MUSTER_TRY(session.coordinator->step(std::chrono::milliseconds(100)));
    if (failed) return *failed;
  }
  session.coordinator->stop();
  return vectors;
}

}  // namespace muster
