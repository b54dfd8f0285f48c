#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/find_machine.h"
#include "config/config.h"
#include "spec/machine.h"

namespace muster {

struct ChosenMachine {
  Machine machine;
  bool is_here = false;        // the one this program runs on
  std::string lost_gpus = {};  // what is told of GPUs of here that it is without; empty: none is
};

/// The machine that a text means: "here", devices of here as `--devices` names them ("2xcpu"),
/// "sim:8xH100-80G", or the name of a machine file. GPUs of here that are lost are none of it.
///
/// Errors: NotFound (none of these), where a GPU of here is lost those of parse_devices, and those
/// of reading the file or this machine.
Result<ChosenMachine> choose_machine(const std::string& text, const Config& config,
                                     const Clock& clock);

/// The same of devices of here that are chosen already, as free as they were when `found` was. It
/// is called `name`. Threads: pure.
Machine machine_of(FoundMachine found, const std::vector<Device>& devices, std::string name);

}  // namespace muster
