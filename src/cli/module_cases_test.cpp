#include "cli/module_cases.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"

namespace muster {
namespace {

using Json = nlohmann::json;

/// Full names of the tensors below `module`.
void add_tensors(const Json& module, const std::string& prefix, std::vector<std::string>& names) {
  for (const auto* key : {"params", "buffers"}) {
    for (const auto& tensor : module[key]) names.push_back(prefix + tensor[0].get<std::string>());
  }
  for (const auto& child : module["children"]) {
    add_tensors(child[1], prefix + child[0].get<std::string>() + ".", names);
  }
}

/// The place that `map` gives to `name`, by the longest key above it; "" for none.
std::string place_of(const std::map<std::string, std::string>& map, std::string name) {
  while (true) {
    if (const auto found = map.find(name); found != map.end()) return found->second;
    if (name.empty()) return "";
    const auto dot = name.rfind('.');
    name = dot == std::string::npos ? "" : name.substr(0, dot);
  }
}

bool is_whole(const Json& problem, const std::map<std::string, std::string>& map) {
  std::vector<std::string> names;
  add_tensors(problem["tree"], "", names);
  for (const auto& name : names) {
    if (place_of(map, name).empty()) return false;
  }
  for (const auto& group : problem["ties"]) {
    for (const auto& name : group) {
      if (place_of(map, name) != place_of(map, group[0])) return false;
    }
  }
  return true;
}

/// The map of a case in the file: pairs; of an answer: an object.
std::map<std::string, std::string> map_of(const Json& value) {
  if (value.is_object()) return value.get<std::map<std::string, std::string>>();
  std::map<std::string, std::string> map;
  for (const auto& pair : value) map[pair[0]] = pair[1];
  return map;
}

Json placements() {
  auto text = read_file(MUSTER_SOURCE_DIR "/src/planner/testdata/accelerate_placements.json");
  EXPECT_TRUE(text);
  return Json::parse(*text);
}

TEST(ModuleCases, AnswersAsAccelerateWhereItsMapIsWhole) {
  const auto file = placements();
  const auto text = answer_module_cases(file.dump(), true);
  ASSERT_TRUE(text) << text.error().message;
  const auto answers = Json::parse(*text);
  ASSERT_EQ(answers.size(), 300U);
  int whole_count = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& problem = file["cases"][i];
    const auto ours = map_of(answers[i]["device_map"]);
    EXPECT_TRUE(is_whole(problem, ours)) << i;
    EXPECT_EQ(answers[i]["balanced_memory"], problem["balanced_memory"]) << i;
    if (problem.contains("error")) continue;
    const auto theirs = map_of(problem["device_map"]);
    if (!is_whole(problem, theirs)) continue;
    ++whole_count;
    EXPECT_EQ(ours, theirs) << i;
    EXPECT_EQ(answers[i]["buffer_warning"], problem["buffer_warning"]) << i;
  }
  EXPECT_EQ(whole_count, 174);
}

}  // namespace
}  // namespace muster
