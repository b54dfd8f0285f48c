#include "doctor/checks.h"

#include <iterator>

namespace muster {
namespace {

void append(std::vector<Check>& all, std::vector<Check> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<Check> check_all(const DoctorFacts& facts) {
  std::vector<Check> checks = check_driver(facts);
  for (const auto& status : facts.snapshot.devices) append(checks, check_device(status, facts));
  append(checks, check_links(facts));
  if (!facts.is_simulated) {
    append(checks, check_system(facts));
    append(checks, check_programs(facts));
  }
  append(checks, check_compute(facts));
  return checks;
}

}  // namespace muster
