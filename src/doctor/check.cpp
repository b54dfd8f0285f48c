#include "doctor/check.h"

#include <algorithm>

namespace muster {

std::string_view verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::Well:
      return "well";
    case Verdict::NotApplicable:
      return "not applicable";
    case Verdict::NotSeen:
      return "not seen";
    case Verdict::Warning:
      return "warning";
    case Verdict::Unfit:
      break;
  }
  return "unfit";
}

Verdict overall_verdict(std::span<const Check> checks) {
  auto worst = Verdict::Well;
  for (const auto& check : checks) worst = std::max(worst, check.verdict);
  return worst < Verdict::Warning ? Verdict::Well : worst;
}

int doctor_exit_code(Verdict overall) {
  constexpr int kWarnings = 20;
  constexpr int kUnfit = 21;
  if (overall == Verdict::Unfit) return kUnfit;
  return overall == Verdict::Warning ? kWarnings : 0;
}

}  // namespace muster
