#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "terminal/terminal_info.h"

namespace muster {

/// A field as text; a dash where a server of another version lacks it. Threads: pure.
std::string field_text(const nlohmann::ordered_json& json, const char* key);

/// The devices of GET /v1/devices, with the decoders on them where there are any. Threads: pure.
std::string ctl_device_table(const nlohmann::ordered_json& devices, const TerminalInfo& terminal);

/// The models of GET /v1/models. Threads: pure.
std::string ctl_model_table(const nlohmann::ordered_json& models, const TerminalInfo& terminal);

/// A line on what became of a device of GET /v1/devices: "cpu:0: ready", and which models and
/// decoders on it cannot be loaded.
std::string changed_device_text(const nlohmann::ordered_json& device);

/// What on a device of GET /v1/devices comes by itself once there is memory for it: "tiny waits for
/// memory: cuda:0 is out of memory"; empty: nothing.
std::string memory_wait_text(const nlohmann::ordered_json& device);

/// A line on a model that was unloaded, from the answer of POST /v1/models/unload.
std::string unloaded_text(const std::string& name, const nlohmann::ordered_json& answer);

}  // namespace muster
