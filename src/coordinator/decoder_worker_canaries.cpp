// A worker that has loaded its decoder continues a known prompt before it is given a stream: a
// wrong token looks like a right one to whoever reads it. The rules are those of canaries that are
// embedded (CanaryBook). They find a device that computes wrong bits, and a file that was changed
// since other workers have read it.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "coordinator/decoder_workers.h"

namespace muster {

void DecoderWorkers::become_ready(std::size_t index) {
  auto& group = groups_[index];
  if (group.was_ever_ready || group.failed_start_count > 0) {
    parts_.on_notice("its new worker answers as it should", index);
  }
  group.canary.reset();
  group.state = State::Ready;
  group.is_asked_for = false;
  group.reason.clear();
  group.was_ready = group.was_ever_ready = true;
  group.forgive_starts();
  group.memory.reset();
  parts_.signal.change();
}

void DecoderWorkers::ask_canary(std::size_t index, const DecoderReady& ready) {
  const auto request = canary_request(ready.vocab_size, ready.length_max);
  groups_[index].canary.emplace(AskedCanary{.answer = CanaryAnswer(request.token_limit),
                                            .decoder_class = ready.decoder_class});
  groups_[index].watch.expect(parts_.clock.now(), kCanaryTokensMost);
  parts_.processes.send(index, MessageType::Generate, kCanarySequence, encode(request));
}

Status DecoderWorkers::on_canary_frame(std::size_t index, const FrameHeader& header,
                                       std::span<const std::byte> payload) {
  auto& canary = *groups_[index].canary;
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Tokens:
      return canary.answer.add(MUSTER_TRY(decode_tokens(payload)));
    case MessageType::Finished:
      MUSTER_TRY(decode_finished(payload));
      if (!canary.answer.is_whole() || std::exchange(canary.is_judged, true)) {
        return Error{ErrorKind::Corrupt, "the worker ended its canary before its end, or twice"};
      }
      apply(canaries_.judge(index, canary.decoder_class, canary.answer.row(), parts_.clock.now()));
      return Done{};
    case MessageType::Failed: {
      const auto failed = MUSTER_TRY(decode_failed(payload));
      // Its steps would find no memory either; that is no wrong bit, and may pass.
      if (options_.waits_for_memory && failed.error.kind == ErrorKind::ResourceExhausted) {
        on_load_failed(index, failed.error);
        return Done{};
      }
      if (failed.error.kind == ErrorKind::Corrupt) return no_numbers(index, failed.error);
      return Error{ErrorKind::Internal,
                   fmt::format("it failed at its canary: {}", failed.error.message)};
    }
    default:
      return Error{ErrorKind::Corrupt,
                   fmt::format("the worker sent an unknown message: type {}", header.type)};
  }
}

// The device or the file: where every worker comes to it, it is the file, which no worker names.
Error DecoderWorkers::no_numbers(std::size_t index, const Error& error) {
  Error named{error.kind, fmt::format("{}: {}", options_.source, error.message)};
  groups_[index].canary_error = named;
  return named;
}

void DecoderWorkers::apply(const std::vector<CanaryVerdict>& verdicts) {
  for (const auto& verdict : verdicts) on_verdict(verdict);
}

// One that has ended or begun anew since it answered is not meant.
void DecoderWorkers::on_verdict(const CanaryVerdict& verdict) {
  auto& group = groups_[verdict.device];
  const bool is_asked = group.state == State::Loading && group.canary.has_value();
  const bool has_answered = is_asked && group.canary->is_judged;
  if (!has_answered && group.state != State::Ready) return;
  if (verdict.outcome == CanaryOutcome::Right) {
    if (has_answered) become_ready(verdict.device);
    return;
  }
  const bool is_wrong = verdict.outcome == CanaryOutcome::Wrong;
  std::string reason = "another worker of its class answers the canary differently";
  if (is_wrong) reason = "it gave a wrong answer to its canary";
  group.was_at_fault = is_wrong;
  close_for(verdict.device, reason);
}

}  // namespace muster
