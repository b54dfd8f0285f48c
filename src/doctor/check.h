#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// What came of looking at one thing, the lightest first.
enum class Verdict : std::uint8_t {
  Well,
  NotApplicable,  // there is nothing of the kind here; the sentence says why
  NotSeen,        // it could not be looked at; the sentence says why
  Warning,        // it works, but slower, less safely or not everywhere
  Unfit,          // do not put work there
};

/// "well", "not applicable", "not seen", "warning", "unfit".
std::string_view verdict_word(Verdict verdict);

/// One thing that was looked at.
struct Check {
  std::string name = {};    // "ecc", "driver": snake_case, of docs/doctor.md
  std::string device = {};  // "cuda:0"; empty: the machine
  Verdict verdict = Verdict::Well;
  std::string sentence = {};  // what was found, values last
  std::string advice = {};    // what to do about it; empty where nothing is wrong
};

/// The worst verdict that counts: Well, Warning or Unfit.
Verdict overall_verdict(std::span<const Check> checks);

/// 0 well, 20 warnings, 21 unfit. Source: docs/errors.md, exit codes without a kind.
int doctor_exit_code(Verdict overall);

}  // namespace muster
