// A served decoder: its files, its settings, and how prompts become ids.

#include "serving/serving_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/wall_clock.h"
#include "chat/chat_message.h"
#include "jobs/decoder_source.h"
#include "modelfile/decoder_config.h"
#include "serving/model_name.h"

namespace muster {
namespace {

// A model that has no name yet goes by what it was asked for as.
const std::string& word_for(const ServedModel& asked) {
  return asked.name.empty() ? asked.model : asked.name;
}

Status check_settings(const ServedModel& asked, const std::string& name) {
  const auto refuse = [&](const char* setting) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: a model that generates has no {}", name, setting)};
  };
  if (asked.pooling) return refuse("pooling");
  if (asked.normalize) return refuse("normalize");
  if (asked.prompt_name) return refuse("prompt_name");
  const auto length = asked.length_max.value_or(kDecoderLengthLeast);
  if (length < kDecoderLengthLeast) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("{}: length_max leaves no room for a prompt and its reply: {}", name, length)};
  }
  return Done{};
}

// A file's own bits and int8 are multiplied on CPUs only. nullopt: auto.
Result<std::optional<DecoderPrecision>> precision_of(const ServedModel& asked,
                                                     const std::string& name, DeviceKind device) {
  using Named = std::optional<DecoderPrecision>;
  if (!asked.precision && !asked.wants_own_bits) return Named();
  const auto named = asked.wants_own_bits
                         ? Named(DecoderPrecision::Own)
                         : parse_decoder_precision(precision_name(*asked.precision));
  const bool is_of_cpus = named == DecoderPrecision::Own || named == DecoderPrecision::Int8;
  if (is_of_cpus && runs_as_gpu(device)) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: {} is computed on CPUs only: on a GPU use bf16 or fp32", name,
                             decoder_precision_name(*named))};
  }
  if (named) return named;
  return Error{ErrorKind::Unsupported,
               fmt::format("{}: decoders are computed in fp32, bf16, int8 or the file's own bits "
                           "(own), not in {}",
                           name, precision_name(*asked.precision))};
}

Status check_cache(const ServedModel& asked, const std::string& name, DeviceKind device) {
  if (asked.kv_cache_dtype == KvCacheDtype::Auto || !runs_as_gpu(device)) return Done{};
  return Error{ErrorKind::Unsupported,
               fmt::format("{}: keys and values are kept in {} on CPUs only: on a GPU use "
                           "kv_cache_dtype auto",
                           name, kv_cache_dtype_name(asked.kv_cache_dtype))};
}

// What clients call a decoder that was given no name: the file's without its end, or as any model.
std::string decoder_name_of(const std::string& model) {
  if (model.ends_with(".gguf")) return std::filesystem::path(model).stem().string();
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) return model;
  const auto path = std::filesystem::absolute(model, ignored).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

// Of one kind, so that a reply has the same bits wherever it goes on: CPUs where there are some, as
// a GPU is named for it.
Result<std::vector<std::size_t>> devices_of(const ServedModel& asked, const std::string& name,
                                            const std::vector<Device>& devices) {
  std::vector<std::size_t> cpus;
  std::vector<std::size_t> gpus;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const bool is_asked =
        asked.devices.empty() || std::find(asked.devices.begin(), asked.devices.end(),
                                           devices[i].name()) != asked.devices.end();
    if (is_asked && devices[i].kind == DeviceKind::Cpu) cpus.push_back(i);
    if (is_asked && runs_as_gpu(devices[i].kind)) gpus.push_back(i);
  }
  if (!cpus.empty()) return cpus;
  if (!gpus.empty()) return gpus;
  return Error{ErrorKind::Unsupported,
               fmt::format("{}: decoders are computed on CPUs and NVIDIA GPUs, and its devices "
                           "have none: use --devices cpu",
                           name)};
}

// In the words for all workers.
GroupState state_of(const DecoderGroupView& worker) {
  switch (worker.state) {
    case DecoderGroupView::State::Loading:
      return worker.restart_count > 0 ? GroupState::Restarting : GroupState::Starting;
    case DecoderGroupView::State::Ready:
      return GroupState::Ready;
    case DecoderGroupView::State::Draining:
      return GroupState::Draining;
    case DecoderGroupView::State::Drained:
      return GroupState::Drained;
    case DecoderGroupView::State::Ended:
      return GroupState::Restarting;
    case DecoderGroupView::State::Failed:
      return GroupState::GivenUp;
  }
  return GroupState::Starting;
}

DecoderPrompts prompts_of(DecoderText text) {
  DecoderPrompts prompts{.text = std::move(text), .chat_template = {}, .why_no_template = {}};
  auto chat = prompts.text.find_template(std::nullopt, /*has_tools=*/false);
  if (chat) {
    prompts.chat_template.emplace(*std::move(chat));
  } else {
    prompts.why_no_template = chat.error().message;
  }
  return prompts;
}

}  // namespace

Result<std::string> DecoderPrompts::rendered(const GenerationCall& call,
                                             std::int64_t now_unix) const {
  if (!chat_template) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("{}; POST /v1/completions continues a text as it is", why_no_template)};
  }
  ChatValue::List messages;
  for (const auto& turn : call.turns) {
    ChatValue::Map message{{"role", ChatValue(turn.role)}, {"content", ChatValue(turn.content)}};
    if (turn.name) message.emplace_back("name", ChatValue(*turn.name));
    messages.emplace_back(std::move(message));
  }
  return chat_template->render(
      chat_input_of(ChatValue(std::move(messages)), text, now_unix, call.template_variables));
}

Result<std::vector<std::uint32_t>> DecoderPrompts::ids_of(const GenerationCall& call,
                                                          std::uint32_t length_most,
                                                          std::int64_t now_unix) const {
  const auto& tokenizer = *text.tokenizer;
  if (!call.ids.empty()) {
    const auto most = tokenizer.vocab_size();
    const auto wrong = std::find_if(call.ids.begin(), call.ids.end(),
                                    [&](std::uint32_t id) { return id >= most; });
    if (wrong == call.ids.end()) return call.ids;
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a token id is not in the vocabulary of {}: {}", most, *wrong)};
  }
  const auto most = std::max(length_most, tokenizer.special_token_count() + 1);
  const auto read = [&](std::string_view prompt, bool adds_special_tokens) {
    const auto scratch = tokenizer.make_scratch(prompt.size());
    auto ids = tokenizer.encode_whole(prompt, most, adds_special_tokens, *scratch);
    return ids ? *std::move(ids) : std::vector<std::uint32_t>(most);
  };
  if (call.turns.empty()) {
    auto ids = read(call.text, true);
    if (!ids.empty()) return ids;
    return Error{ErrorKind::InvalidArgument, "the prompt is empty: there is nothing to continue"};
  }
  // Special tokens are found in it and none are added, since templates write their own.
  const auto prompt = MUSTER_TRY(rendered(call, now_unix));
  auto ids = read(prompt, false);
  if (!ids.empty()) return ids;
  return Error{ErrorKind::InvalidArgument, "the chat template makes nothing of these messages"};
}

std::string DecoderPrompts::text_of(const GenerationCall& call) const {
  return call.ids.empty() ? call.text : text.tokenizer->decode(call.ids, false);
}

void ServingDecoder::take_precision(DecoderPrecisionChoice choice) {
  precision = choice.precision;
  precision_reason = std::move(choice.reason);
  is_precision_auto = false;
}

std::uint32_t ServingDecoder::length_max() const {
  const auto told = fleet ? fleet->length_max() : 0;
  return told == 0 ? length_most : std::min(told, length_most);
}

bool ServingDecoder::can_work() const { return !is_broken && fleet->can_work(); }

bool ServingDecoder::was_ever_ready() const { return fleet->length_max() > 0; }

ServedDecoderStatus ServingDecoder::description() const {
  return {.name = name,
          .path = path,
          .is_leaving = is_leaving,
          .length_max = length_max(),
          .vocab_size = prompts->text.tokenizer->vocab_size(),
          .family = spec.family,
          .has_chat_template = prompts->chat_template.has_value(),
          .precision = precision,
          .is_precision_known = !is_precision_auto,
          .precision_reason = precision_reason,
          .kv_cache_dtype = asked.kv_cache_dtype,
          .planned_bytes = planned_bytes,
          .created_unix_seconds = created_unix_seconds,
          .request_count = request_count,
          .prompt_token_count = prompt_token_count,
          .reply_token_count = reply_token_count};
}

ServedDecoderStatus ServingDecoder::status(const std::vector<Device>& devices_of_server) const {
  auto status = description();
  status.decoder_class = fleet->decoder_class();
  const auto groups = fleet->groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& group = groups[i];
    // A device that rests says nothing of the model.
    if (status.reason.empty() && !group.is_to_rest) status.reason = group.reason;
    const auto& device = devices_of_server[devices[i]];
    status.devices.push_back({.name = device.name(),
                              .is_gpu = runs_as_gpu(device.kind),
                              .state = state_of(group),
                              .reason = group.reason,
                              .failure_kind = group.failure_kind,
                              .start_failure = group.start_failure,
                              .waits_for_memory = group.waits_for_memory,
                              .is_asked_for = group.is_asked_for,
                              .pid = group.pid,
                              .restart_count = group.restart_count,
                              .running_count = group.stream_count,
                              .cache_use = group.cache_use,
                              .preemption_count = group.preemption_count,
                              .drafted_count = group.drafted_count,
                              .accepted_count = group.accepted_count});
  }
  if (fleet->is_ready()) status.state = ModelState::Ready;
  if (!can_work()) status.state = ModelState::Failed;
  if (status.state == ModelState::Ready) status.reason.clear();
  if (fleet->is_to_rest()) {
    status.state = ModelState::Drained;
    status.reason = fmt::format("every device of {} is drained", name);
  }
  return status;
}

Result<std::unique_ptr<ServingDecoder>> read_decoder(const ServedModel& asked,
                                                     const std::vector<Device>& devices) {
  auto decoder = std::make_unique<ServingDecoder>();
  decoder->asked = asked;
  decoder->name = asked.name.empty() ? decoder_name_of(asked.model) : asked.name;
  MUSTER_TRY(check_model_name(decoder->name));
  MUSTER_TRY(check_settings(asked, decoder->name));
  decoder->devices = MUSTER_TRY(devices_of(asked, decoder->name, devices));
  const auto kind = devices[decoder->devices.front()].kind;
  const auto named = MUSTER_TRY(precision_of(asked, decoder->name, kind));
  MUSTER_TRY(check_cache(asked, decoder->name, kind));
  decoder->is_precision_auto = !named.has_value();
  if (named) {
    decoder->precision = *named;
    decoder->precision_reason = "asked for";
  }
  const auto source = MUSTER_TRY(find_decoder_source(asked.model));
  decoder->path = std::filesystem::absolute(source).string();
  decoder->spec = MUSTER_TRY(read_decoder_spec(source));
  auto text = MUSTER_TRY(load_decoder_text(source));
  decoder->prompts = std::make_shared<const DecoderPrompts>(prompts_of(std::move(text)));
  decoder->length_most =
      std::min(decoder->spec.length_max, asked.length_max.value_or(decoder->spec.length_max));
  decoder->created_unix_seconds = unix_seconds();
  return decoder;
}

Status check_decoder_settings(const ServedModel& asked, const std::vector<Device>& devices) {
  MUSTER_TRY(check_settings(asked, word_for(asked)));
  const auto found = MUSTER_TRY(devices_of(asked, word_for(asked), devices));
  MUSTER_TRY(precision_of(asked, word_for(asked), devices[found.front()].kind));
  return check_cache(asked, word_for(asked), devices[found.front()].kind);
}

}  // namespace muster
