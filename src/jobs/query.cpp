// A few texts through the same session as a whole corpus, so that a question gets the vector that
// the same text would have in the output. One failed text fails all: there is no search without its
// question.

#include "jobs/query.h"

#include <cstring>
#include <optional>
#include <utility>

#include "jobs/embedding_session.h"

namespace muster {

Result<std::vector<std::vector<float>>> embed_texts(const EmbedOptions& options,
                                                    std::span<const std::string> texts,
                                                    const CorpusEvents& events,
                                                    const Clock& clock) {
  // The key of a text is its place here: rows come back in any order.
  std::vector<std::vector<float>> vectors(texts.size());
  std::optional<Error> failed;
  FleetEvents on;
  on.on_row = [&](ItemKey key, std::span<const std::byte> row, std::size_t) {
    vectors[key].resize(row.size() / sizeof(float));
    std::memcpy(vectors[key].data(), row.data(), row.size());
  };
  on.on_item_failed = [&](ItemKey, const Error& error) { failed = error; };
  on.on_notice = [&](const std::string& notice, std::optional<std::size_t>) {
    events.on_notice(notice);
  };
  auto session = MUSTER_TRY(open_session(options, on, clock, [] { return false; }));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<TokenId> ids;
    const auto encoded = session.model.text_encoder->encode(texts[i], ids);
    session.fleet->texts().submit(
        {.item = {.key = i, .model = kSessionModel, .token_count = encoded.token_count},
         .ids = std::move(ids)});
  }
  while (session.fleet->texts().pending_count() > 0) {
    MUSTER_TRY(session.fleet->loop().step(std::chrono::milliseconds(100)));
    if (failed) return *failed;
  }
  session.fleet->loop().stop();
  return vectors;
}

}  // namespace muster
