// A server goes on when one of its devices fails, which is what servers are for. A point that was
// measured on fewer devices than it names is not that point, so it is asked at the end; and it is
// ready with the first of them, so it is asked at the begin, too.
#include "cli/sweep/server_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace muster {
namespace {

using Json = nlohmann::json;

Json member(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) ? json[name] : Json();
}

std::string text_of(const Json& json, const char* name) {
  const auto value = member(json, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::uint64_t number_of(const Json& json, const char* name) {
  const auto value = member(json, name);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

std::uint64_t held_by(const Json& device) {
  std::uint64_t weights = 0;
  std::uint64_t load_peak = 0;
  for (const auto& model : member(device, "models")) {
    weights += number_of(model, "weights_bytes");
    load_peak = std::max(load_peak, number_of(model, "load_peak_bytes"));
  }
  return std::max(load_peak, weights + number_of(device, "activation_peak_bytes"));
}

std::string not_ready(std::string_view name, const Json& json) {
  const auto state = text_of(json, "state");
  if (state.empty() || state == "ready") return {};
  const auto reason = text_of(json, "reason");
  return fmt::format("{} is {}{}{}", name, state, reason.empty() ? "" : ": ", reason);
}

// One that is ready now and was not in between: others, or a new process, had its work meanwhile.
std::string was_away(std::string_view name, const Json& worker) {
  const auto times = number_of(worker, "restart_count") + number_of(worker, "quarantine_count");
  if (times == 0) return {};
  return fmt::format("{} was not ready all the time: its worker was started again or checked",
                     name);
}

bool flag_of(const Json& json, const char* name) {
  const auto value = member(json, name);
  return value.is_boolean() && value.get<bool>();
}

// What it says of its wait for memory; nullopt: it waits for none. A worker of vectors says it of
// each of its models. The server tries again by itself, so that the device comes in the middle of a
// run that has begun without it.
std::optional<std::string> memory_wait_of(const Json& worker) {
  if (flag_of(worker, "waits_for_memory")) return text_of(worker, "reason");
  for (const auto& model : member(worker, "models")) {
    if (flag_of(model, "waits_for_memory")) return text_of(model, "reason");
  }
  return std::nullopt;
}

// It has not worked yet, and will: nothing has gone wrong so far but that others have its memory.
bool is_coming(const Json& worker) {
  if (memory_wait_of(worker)) return true;
  if (number_of(worker, "restart_count") > 0) return false;
  const auto state = text_of(worker, "state");
  if (state != "ready") return state == "starting";
  for (const auto& model : member(worker, "models")) {
    const auto model_state = text_of(model, "state");
    if (model_state == "absent" || model_state == "loading") return true;
  }
  return false;
}

// A decoder has a worker of its own; a device without models has none.
bool has_one_coming(const Json& device) {
  for (const auto& decoder : member(device, "decoders")) {
    if (is_coming(decoder)) return true;
  }
  return !member(device, "models").empty() && is_coming(device);
}

// Before a decoder has workers, the precision of it is measured.
bool has_one_measured(const Json& device) {
  for (const auto& decoder : member(device, "decoders")) {
    if (text_of(decoder, "state") != "starting") continue;
    const auto reason = text_of(decoder, "reason");
    if (reason.ends_with("is being measured") || reason.ends_with("is to be measured")) return true;
  }
  return false;
}

// A decoder has a worker of its own; a device without models has none.
bool has_one_ready(const Json& device) {
  const auto is_ready = [](const Json& one) { return text_of(one, "state") == "ready"; };
  for (const auto& decoder : member(device, "decoders")) {
    if (is_ready(decoder)) return true;
  }
  for (const auto& model : member(device, "models")) {
    if (is_ready(model)) return true;
  }
  return false;
}

ErrorKind failure_kind_of(const Json& json) {
  const auto name = text_of(json, "failure_kind");
  for (std::uint8_t i = 0; i < kErrorKindCount; ++i) {
    if (error_kind_name(static_cast<ErrorKind>(i)) == name) return static_cast<ErrorKind>(i);
  }
  return ErrorKind::Unavailable;
}

// Why a worker will not load what it is to serve; nullopt: it has it, or may yet. A server gives up
// a worker for nothing else.
std::optional<Error> load_failure_of(const Json& worker) {
  if (memory_wait_of(worker)) return std::nullopt;
  const auto error_of = [](const Json& one) {
    auto reason = text_of(one, "reason");
    if (reason.empty()) reason = "the model cannot be loaded";
    return Error{failure_kind_of(one), std::move(reason)};
  };
  for (const auto& model : member(worker, "models")) {
    if (text_of(model, "state") == "failed") return error_of(model);
  }
  if (text_of(worker, "state") == "given up") return error_of(worker);
  return std::nullopt;
}

// Of each of its workers.
std::vector<std::optional<Error>> load_failures(const Json& device) {
  std::vector<std::optional<Error>> all;
  if (!member(device, "models").empty()) all.push_back(load_failure_of(device));
  for (const auto& decoder : member(device, "decoders")) all.push_back(load_failure_of(decoder));
  return all;
}

// Of the first of its workers that waits.
std::optional<std::string> first_memory_wait(const Json& device) {
  if (auto wait = memory_wait_of(device)) return wait;
  for (const auto& decoder : member(device, "decoders")) {
    if (auto wait = memory_wait_of(decoder)) return wait;
  }
  return std::nullopt;
}

// The first that is wrong; empty: it worked all the time. A decoder has a worker of its own.
std::string fault_of(const std::string& name, const Json& device) {
  for (const auto& decoder : member(device, "decoders")) {
    if (auto fault = not_ready(name, decoder); !fault.empty()) return fault;
    if (auto fault = was_away(name, decoder); !fault.empty()) return fault;
  }
  if (member(device, "models").empty()) return {};
  if (auto fault = not_ready(name, device); !fault.empty()) return fault;
  for (const auto& model : member(device, "models")) {
    if (auto fault = not_ready(name, model); !fault.empty()) return fault;
  }
  return was_away(name, device);
}

}  // namespace

ServerAccount read_server_account(const std::string& models_answer,
                                  const std::string& devices_answer) {
  ServerAccount account;
  const auto models = Json::parse(models_answer, nullptr, /*allow_exceptions=*/false);
  const auto listed = member(models, "data");
  if (listed.is_array() && !listed.empty()) {
    const auto precision = text_of(listed.front(), "precision");
    if (!precision.empty()) account.precision = precision;
  }
  std::vector<std::optional<Error>> failures;  // of all workers
  const auto answer = Json::parse(devices_answer, nullptr, /*allow_exceptions=*/false);
  for (const auto& device : member(answer, "devices")) {
    const auto name = text_of(device, "name");
    if (name.empty()) continue;
    if (const auto most = held_by(device); most > 0) account.held[name] = most;
    if (has_one_coming(device)) account.coming.push_back(name);
    account.is_ready = account.is_ready || has_one_ready(device);
    account.is_measuring = account.is_measuring || has_one_measured(device);
    if (!account.memory_wait) account.memory_wait = first_memory_wait(device);
    for (auto& failure : load_failures(device)) failures.push_back(std::move(failure));
    if (auto fault = fault_of(name, device); !fault.empty()) {
      account.faults.push_back(std::move(fault));
    }
  }
  const bool may_one = std::any_of(failures.begin(), failures.end(),
                                   [](const auto& failure) { return !failure.has_value(); });
  if (!failures.empty() && !may_one) account.load_failure = failures.front();
  return account;
}

Status MemoryPatience::look(const ServerAccount& account, TimePoint now) {
  if (!account.memory_wait) {
    since_.reset();
    return Done{};
  }
  if (!since_) since_ = now;
  if (!account.memory_wait->empty()) reason_ = *account.memory_wait;
  if (now - *since_ < kMost) return Done{};
  return Error{ErrorKind::ResourceExhausted,
               reason_.empty() ? "there is no memory for the model" : reason_};
}

}  // namespace muster
