// A plan is carried out by handing its devices to whatever would have taken those of `--devices`.
#include "cli/plan_devices.h"

#include <fmt/format.h>

#include "base/file.h"
#include "modelfile/model_folder.h"
#include "planner/forms/plan_files.h"

namespace muster {

Result<std::string> devices_of_plan(const CommandContext& context, const std::string& model) {
  const auto file = context.arguments.value("--plan");
  if (!file) return context.config.text(SettingId::Devices).value_or("auto");
  const auto text = MUSTER_TRY(read_file(*file));
  const auto plan = MUSTER_TRY(parse_plan_yaml(*file, text));
  const auto folder = MUSTER_TRY(find_model(model));
  const auto found = MUSTER_TRY(read_model_folder(folder));
  const auto devices = MUSTER_TRY(devices_to_embed(*file, plan, found.name));
  for (const auto& given : context.arguments.settings) {
    if (given.id == SettingId::Devices && given.value != devices) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("--devices {} and the plan's {} disagree", given.value, devices)};
    }
  }
  return devices;
}

}  // namespace muster
