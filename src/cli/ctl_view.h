#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "terminal/terminal_info.h"

namespace muster {

/// A field as text; a dash where a server of another version lacks it. Threads: pure.
std::string field_text(const nlohmann::ordered_json& json, const char* key);

/// The devices of GET /v1/devices. One that is drained while a decoder computes a reply on it is
/// shown as generating, and why. Threads: pure.
std::string ctl_device_table(const nlohmann::ordered_json& devices, const TerminalInfo& terminal);

/// The models of GET /v1/models. Threads: pure.
std::string ctl_model_table(const nlohmann::ordered_json& models, const TerminalInfo& terminal);

/// A line on what became of a device. note: what the server says of decoders on it; empty: nothing.
std::string changed_device_text(const std::string& name, const std::string& state,
                                const std::string& note);

}  // namespace muster
