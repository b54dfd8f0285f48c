// The start of a local run, ordered by what can overlap: workers are started as soon as the model's
// configuration is read, and link torch while this process reads the tokenizer and hashes the
// weights. The precision is settled between their greetings and the loading, because it may have to
// be measured on them.

#include "jobs/embedding_session.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/build_info.h"
#include "jobs/precision_settling.h"

namespace muster {

ModelChoice model_choice(const EmbedOptions& options) {
  return {.model = options.model,
          .length_max = options.length_max,
          .pooling = options.pooling,
          .normalize = options.normalize,
          .prompt_name = options.prompt_name};
}

namespace {

// The worker of a GPU without a driver, as of one that is lost, says its engine, too
// (engine/cuda.h). It computes nothing.
bool is_without_driver(const std::string& engine_class) {
  return engine_class.starts_with("cuda/none/");
}

// What no row is of is not the run's: it goes on when that device is repaired, or is gone.
std::vector<std::string> classes_of_rows(const std::vector<std::string>& classes) {
  auto computing = classes;
  std::erase_if(computing, is_without_driver);
  return computing.empty() ? classes : computing;
}

// Of the device that is measured: the first that has greeted and computes.
PrecisionQuestion question_of(const EmbedOptions& options,
                              const std::vector<GroupStatus>& devices) {
  PrecisionQuestion question{.asked = options.precision,
                             .processor = {},
                             .engine_class = {},
                             .cache_folder = options.cache_folder};
  for (const auto& device : devices) {
    if (device.engine_class.empty()) continue;
    const bool is_first = question.engine_class.empty();
    const bool computes = !is_without_driver(device.engine_class);
    if (!is_first && !computes) continue;
    question.processor = device.device().model;
    question.engine_class = device.engine_class;
    if (computes) break;
  }
  return question;
}

}  // namespace

Result<EmbeddingSession> open_session(const EmbedOptions& options, FleetEvents events,
                                      const Clock& clock, const std::function<bool()>& cancelled,
                                      const std::function<void(const std::string&)>& on_phase) {
  EmbeddingSession session;
  const auto begin = [&on_phase](const char* phase) {
    if (on_phase) on_phase(phase);
  };
  begin("reading the model");
  const auto choice = model_choice(options);
  session.model = MUSTER_TRY(find_and_read(choice));

  begin("starting workers");
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
  fleet.dispatch.batch_time_most = Duration::max();  // no query waits behind a batch of a corpus
  session.fleet = MUSTER_TRY(Fleet::start(std::move(fleet), std::move(events), clock));
  MUSTER_TRY(open_texts(choice, session.model));
  const auto greeted = MUSTER_TRY(session.fleet->wait_for_greetings(cancelled));
  const auto classes = classes_of_rows(greeted);
  const PrecisionQuestion question = question_of(options, session.fleet->groups());
  const auto choice_made = MUSTER_TRY(settle_precision(
      question, session.model,
      [&](const Probe& probe) {
        begin("measuring precisions");
        const auto began = clock.now();
        auto verdict = session.fleet->probe(probe, cancelled);
        session.measuring_seconds = seconds(clock.now() - began);
        return verdict;
      },
      on_notice));
  session.precision = choice_made.precision;
  session.precision_reason = choice_made.reason;
  session.equality_class = fmt::format(
      "{} {} {}", session.model.hash, precision_name(session.precision), fmt::join(classes, " + "));
  FleetModel model;
  model.load.model = model_request(session.model);
  model.load.precision = session.precision;
  // Tells a device that fails at everything, or lies, from a text that cannot be computed.
  session.model.text_encoder->encode(precision_texts().front(), model.canary);
  begin("loading the model");
  session.fleet->models().load(kSessionModel, std::move(model));
  return session;
}

}  // namespace muster
