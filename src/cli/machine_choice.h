#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "spec/machine.h"

namespace muster {

struct ChosenMachine {
  Machine machine;
  bool is_here = false;  // the one this program runs on
};

/// The machine that a text means: "here", devices of here as `--devices` names them ("2xcpu"),
/// "sim:8xH100-80G", or the name of a machine file.
///
/// Errors: NotFound (none of these), and those of reading the file or this machine.
Result<ChosenMachine> choose_machine(const std::string& text, const Config& config,
                                     const Clock& clock);

}  // namespace muster
