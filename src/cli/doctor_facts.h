#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "doctor/facts.h"
#include "telemetry/collector.h"

namespace muster {

/// A machine under examination: what was found, and the collector that goes on watching it.
struct Examination {
  DoctorFacts facts;
  std::unique_ptr<Collector> collector;  // nullptr: it could not start; `facts` says why
};

/// Watches the machine for some seconds and looks everything up but the compute tests.
///
/// Errors: NotFound (no such library, folder or machine), InvalidArgument (a broken machine file),
/// Unavailable (no topology of the CPUs).
Result<Examination> examine(const CommandContext& context);

/// Takes the collector's newest findings into `facts` where they are worse than those before: what
/// shows only under load, such as a slow link, counts too.
void merge_worse_findings(const Collector& collector, DoctorFacts& facts);

}  // namespace muster
