// The one-line notation for simulated machines, "sim:2x8xH100-80G". It is a small grammar of
// counts, names and options; messages point at the term that is wrong. Terms without a count of
// nodes share one node, so "4xL4+4xT4" is a mixed node, while "2x4xL4" is two nodes. Commas
// separate options only, and a GPU behind one is answered with the line as it was probably meant.

#include "topology/machine_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "spec/gpu_catalogue.h"
#include "topology/links.h"
#include "topology/machine_builder.h"

namespace muster {
namespace {

constexpr std::string_view kPrefix = "sim:";
constexpr std::string_view kForm = "sim:[NODESx]COUNTxGPU[+…][,host=BYTES][,network=BYTES]";

Error bad(std::string_view what, std::string_view value) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", what, value.substr(0, 60))};
}

struct Term {
  std::optional<std::uint64_t> nodes;
  std::uint64_t count = 1;
  const GpuFacts* gpu = nullptr;
};

// "8x" in front of `text`, which loses it.
Result<std::optional<std::uint64_t>> take_count(std::string_view& text) {
  const auto digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || text[digits] != 'x') {
    return std::optional<std::uint64_t>();
  }
  std::uint64_t count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + digits, count);
  if (parsed.ec != std::errc() || count == 0 || count > kMachineDevicesMax) {
    return bad(fmt::format("a machine has 1 to {} devices", with_thousands(kMachineDevicesMax)),
               text);
  }
  text.remove_prefix(digits + 1);
  return std::optional(count);
}

// One count is of devices, two are nodes and then devices: "8xL4" and "2x8xL4".
Result<Term> parse_term(std::string_view text) {
  Term term;
  const auto first = MUSTER_TRY(take_count(text));
  const auto second = MUSTER_TRY(take_count(text));
  if (second) term.nodes = first;
  if (first) term.count = second.value_or(*first);
  if (text.empty()) return bad("a GPU is missing behind the count", kForm);
  term.gpu = MUSTER_TRY(find_gpu(text));
  return term;
}

// "64GB", "1.5TB": powers of 1000 as everywhere in muster, "GiB" and "TiB" of 1024.
Result<std::uint64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
                             {"GB", 1e9},           {"TB", 1e12},
                             {"MB", 1e6},           {"B", 1.0}};
  constexpr double kBytesMax = 1e18;
  for (const auto& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = text.substr(0, text.size() - unit.name.size());
    double value = 0.0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool is_whole = parsed.ec == std::errc() && parsed.ptr == number.data() + number.size();
    if (!is_whole || !(value >= 0.0) || value * unit.bytes > kBytesMax) break;
    return static_cast<std::uint64_t>(value * unit.bytes);
  }
  return bad("not a number of bytes like 64GB or 64GiB", text);
}

// For all nodes of the text: nodes of different hosts need a machine file.
struct Options {
  std::uint64_t host_bytes = 0;
  std::optional<double> network_bytes_per_second;
};

Status parse_option(std::string_view text, Options& options) {
  const auto equals = text.find('=');
  const auto name = text.substr(0, equals);
  const auto value = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  if (name == "host") {
    options.host_bytes = MUSTER_TRY(parse_bytes(value));
    return Done{};
  }
  if (name == "network") {
    const auto bytes = MUSTER_TRY(parse_bytes(value));
    if (bytes == 0) return bad("a network carries more than nothing", text);
    options.network_bytes_per_second = static_cast<double>(bytes);
    return Done{};
  }
  return bad("neither host= nor network=", text);
}

// "2xL4,1xT4": what stands behind a comma is an option, and GPUs of another kind behind a "+".
Status check_commas(std::string_view text) {
  std::string mended(text);
  bool has_gpu = false;
  for (auto comma = text.find(','); comma != text.npos; comma = text.find(',', comma + 1)) {
    const auto word = trim(text.substr(comma + 1, text.find(',', comma + 1) - comma - 1));
    if (word.empty() || word.find('=') != word.npos) continue;
    mended[comma] = '+';
    has_gpu = true;
  }
  if (!has_gpu) return Done{};
  return bad("GPUs of several kinds are joined by \"+\"; did you mean", mended);
}

// Links are those of the catalogue's boards, as a line of text has no place for a matrix.
Status add_node(MachineBuilder& builder, std::uint64_t nodes, std::span<const Term> terms,
                std::uint64_t host_bytes) {
  std::vector<MachineDevice> devices;
  std::vector<const GpuFacts*> gpus;
  for (const auto& term : terms) {
    if (term.count > kNodeDevicesMax - devices.size()) {
      return bad(
          fmt::format("a node has at most {} devices; write NODESxCOUNTxGPU", kNodeDevicesMax),
          fmt::format("{}x{}", term.count, term.gpu->name));
    }
    MachineDevice device;
    device.device_class = builder.add_class(device_class(*term.gpu));
    device.free_bytes = term.gpu->memory_bytes;
    devices.insert(devices.end(), term.count, device);
    gpus.insert(gpus.end(), term.count, term.gpu);
  }
  return builder.add_nodes(nodes, devices, links_of(assumed_links(gpus), gpus), host_bytes);
}

// One figure stands for all devices, so it is the slowest: a plan must not count on more.
double slowest_host_link(std::span<const Term> terms) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const auto& term : terms) {
    slowest = std::min(slowest, pcie_bytes_per_second(term.gpu->pcie_generation));
  }
  return slowest;
}

}  // namespace

Result<Machine> parse_machine(std::string_view text) {
  if (!text.starts_with(kPrefix)) return bad(fmt::format("not a machine like {}", kForm), text);
  MUSTER_TRY(check_commas(text));
  auto parts = split(text.substr(kPrefix.size()), ',');
  Options options;
  for (std::size_t i = 1; i < parts.size(); ++i) MUSTER_TRY(parse_option(trim(parts[i]), options));

  std::vector<Term> terms;
  for (const auto& word : split(parts.front(), '+')) {
    terms.push_back(MUSTER_TRY(parse_term(trim(word))));
  }
  MachineBuilder builder{std::string(text)};
  std::vector<Term> together;  // what shares the one node that is not counted
  for (const auto& term : terms) {
    if (!term.nodes) {
      together.push_back(term);
      continue;
    }
    MUSTER_TRY(add_node(builder, *term.nodes, {&term, 1}, options.host_bytes));
  }
  if (!together.empty()) MUSTER_TRY(add_node(builder, 1, together, options.host_bytes));
  auto& machine = builder.machine();
  machine.host_link_bytes_per_second = slowest_host_link(terms);
  if (machine.nodes.size() > 1) {
    machine.network_bytes_per_second =
        options.network_bytes_per_second.value_or(kNetworkBytesPerSecond);
  }
  return builder.take();
}

}  // namespace muster
