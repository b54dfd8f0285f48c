#include "service/embedding_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "base/text.h"
#include "service/precision_choice.h"

namespace muster {
namespace {

Result<Verdict> measure(EmbeddingSession& session, const std::function<bool()>& cancelled) {
  Probe probe;
  probe.model = model_request(session.model);
  std::vector<TokenId> ids;
  for (const auto text : precision_texts()) {
    session.model.text_encoder->encode(text, ids);
    probe.lengths.push_back(static_cast<std::uint32_t>(ids.size()));
    probe.ids.insert(probe.ids.end(), ids.begin(), ids.end());
  }
  return session.fleet->probe(probe, cancelled);
}

Status settle_precision(const EmbedOptions& options, const std::string& engine_class,
                        EmbeddingSession& session,
                        const std::function<void(const std::string&)>& on_notice,
                        const std::function<bool()>& cancelled) {
  if (options.precision) {
    session.precision = *options.precision;
    session.precision_reason = "asked for";
    return Done{};
  }
  const VerdictKey key{.model_hash = session.model.hash,
                       .processor = options.devices.front().model,
                       .engine_class = engine_class,
                       .pooling = std::string(pooling_name(session.model.pooling))};
  auto verdict = read_cached_verdict(options.cache_folder, key);
  const bool was_cached = verdict.has_value();
  if (!verdict) {
    on_notice("measuring which precision is fastest here (once for this model and processor)");
    verdict = MUSTER_TRY(measure(session, cancelled));
    if (const auto kept = write_cached_verdict(options.cache_folder, key, *verdict); !kept) {
      on_notice(fmt::format("the measurement cannot be kept: {}", kept.error().message));
    }
  }
  const auto choice = choose_precision(*verdict);
  session.precision = choice.precision;
  session.precision_reason = choice.reason + (was_cached ? " (kept from an earlier run)" : "");
  return Done{};
}

}  // namespace

Result<EmbeddingSession> open_session(const EmbedOptions& options, FleetEvents events,
                                      const Clock& clock, const std::function<bool()>& cancelled) {
  EmbeddingSession session;
  const ModelChoice choice{.model = options.model,
                           .length_max = options.length_max,
                           .pooling = options.pooling,
                           .normalize = options.normalize,
                           .prompt_name = options.prompt_name};
  session.model = MUSTER_TRY(find_and_read(choice));

  // The workers link torch while this process reads tokenizer and weights.
  const auto on_notice = [tell = events.on_notice](const std::string& sentence) {
    tell(sentence, std::nullopt);
  };
  FleetOptions fleet;
  fleet.devices = options.devices;
  fleet.worker_program = options.worker_program;
  fleet.torch_root = options.torch_root;
  fleet.build = build_name();
  fleet.batch_tokens = options.batch_tokens;
  session.fleet = MUSTER_TRY(Fleet::start(std::move(fleet), std::move(events), clock));
  MUSTER_TRY(open_texts(choice, session.model));
  const auto classes = MUSTER_TRY(session.fleet->wait_for_greetings(cancelled));
  MUSTER_TRY(settle_precision(options, classes.front(), session, on_notice, cancelled));
  session.equality_class = fmt::format(
      "{} {} {}", session.model.hash, precision_name(session.precision), fmt::join(classes, " + "));
  FleetModel model;
  model.load.model = model_request(session.model);
  model.load.precision = session.precision;
  session.fleet->load(kSessionModel, std::move(model));
  return session;
}

}  // namespace muster
