#pragma once

#include <string>

#include "cli/command.h"
#include "config/schema.h"

namespace muster {

/// A flag as it is explained: "--devices LIST", and what it does with its default. Help texts and
/// the manual are made of these.
struct FlagText {
  std::string head;
  std::string text;
};

FlagText flag_text(const Setting& setting);
FlagText flag_text(const RunFlag& flag);

}  // namespace muster
