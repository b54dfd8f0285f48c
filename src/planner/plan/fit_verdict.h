#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

class PlanState;
struct Plan;

/// Whether a model fits a machine: what `muster plan` and `muster estimate` say first.
///
/// A model fits when the memory of the devices holds all of it: the weights and the work memory
/// (KV cache, activations, logits, training states, workspace, driver context), with the margin
/// kept free. The devices of a machine with GPUs are its GPUs, of one without GPUs its CPU devices.
enum class Fit : std::uint8_t {
  OnDevices,       // it fits
  WithOffloading,  // only where layers lie in host memory; they go over the host's link each step
  No,              // layers would lie on disk, or there is no placement
};

/// "fits", "fits-with-offloading", "does-not-fit": `verdict` in JSON.
std::string_view fit_name(Fit fit);

/// "FITS", "FITS ONLY WITH OFFLOADING", "DOES NOT FIT": what `FitVerdict::sentence` begins with.
std::string_view fit_words(Fit fit);

struct FitVerdict {
  Fit fit = Fit::No;
  std::string sentence;  // "FITS: 9.75 GB of 22.9 GB usable on each of 2 devices"
};

/// Where the weights of a plan's first copy lie decides; copies differ in their devices alone.
/// The sentence says by how much: the fullest device, what lies off the devices, or
/// `Plan::missing`.
FitVerdict judge_fit(const PlanState& state, const Plan& plan);

}  // namespace muster
