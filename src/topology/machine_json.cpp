// Reads and writes machine descriptions. Every key is checked against the known ones and every
// error names the place of the value, as in "node 2 device 0": files are written by hand, and a key
// that nothing reads would be a setting without effect. What is written reads back as the same
// machine, with equal neighbours folded into counts and the rate of each link written out, so that
// later changes of the catalogue do not alter it.

#include "topology/machine_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/text.h"
#include "spec/gpu_catalogue.h"
#include "topology/links.h"
#include "topology/machine_builder.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kFormat = 1;
constexpr std::uint64_t kBytesMax = 1'000'000'000'000'000'000;
constexpr double kRateMax = 1e21;
constexpr std::uint64_t kCoresMax = 100'000;

/// One object of the file: typed fields, and a word for where it stands.
class Fields {
 public:
  Fields(std::string place, const Json& object) : place_(std::move(place)), object_(object) {}

  Error bad(std::string_view key, std::string_view wanted) const {
    return Error{ErrorKind::InvalidArgument, fmt::format("{}: {} must be {}", place_, key, wanted)};
  }

  /// Refuses keys that nothing reads.
  Status only(std::initializer_list<std::string_view> keys) const {
    if (!object_.is_object()) {
      return Error{ErrorKind::InvalidArgument, fmt::format("{}: not a JSON object", place_)};
    }
    const std::vector<std::string> known(keys.begin(), keys.end());
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const auto shown = invalid_utf8_at(key) ? std::string("?") : key.substr(0, 60);
      const auto nearest = nearest_name(shown, known);
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{}: unknown key {}{}", place_, shown,
                               nearest ? fmt::format(": did you mean {}?", *nearest) : "")};
    }
    return Done{};
  }

  const Json* find(std::string_view key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  Result<std::uint64_t> count(std::string_view key, std::uint64_t least, std::uint64_t most,
                              std::uint64_t fallback) const {
    const auto* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < least ||
        value->get<std::uint64_t>() > most) {
      return bad(key, fmt::format("a whole number of {} to {}", least, most));
    }
    return value->get<std::uint64_t>();
  }

  Result<std::optional<double>> rate(std::string_view key) const {
    const auto* value = find(key);
    if (value == nullptr) return std::optional<double>();
    if (!value->is_number() || !(value->get<double>() > 0.0) || value->get<double>() > kRateMax) {
      return bad(key, "a number above 0");
    }
    return std::optional(value->get<double>());
  }

  Result<std::optional<std::string>> text(std::string_view key) const {
    const auto* value = find(key);
    if (value == nullptr) return std::optional<std::string>();
    if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
      return bad(key, "a text");
    }
    return std::optional(value->get<std::string>());
  }

  Result<const Json*> list(std::string_view key, bool is_needed) const {
    const auto* value = find(key);
    if (value == nullptr && !is_needed) return static_cast<const Json*>(nullptr);
    if (value == nullptr || !value->is_array()) return bad(key, "a list");
    return value;
  }

  const std::string& place() const { return place_; }

 private:
  std::string place_;
  const Json& object_;
};

std::optional<DeviceKind> parse_kind(std::string_view text) {
  for (const auto kind : {DeviceKind::Cpu, DeviceKind::Cuda, DeviceKind::Rocm, DeviceKind::Mps,
                          DeviceKind::Simulated, DeviceKind::Standin}) {
    if (device_kind_name(kind) == text) return kind;
  }
  return std::nullopt;
}

// Speeds may be absent, and then plans go by bytes; a guess would be taken for a measurement.
Result<DeviceClass> read_class(const Fields& fields) {
  MUSTER_TRY(fields.only(
      {"model", "kind", "memory_bytes", "flops_per_second", "memory_bytes_per_second"}));
  const auto model = MUSTER_TRY(fields.text("model"));
  if (!model) return fields.bad("model", "a text");
  const auto kind_name = MUSTER_TRY(fields.text("kind"));
  const auto kind = parse_kind(kind_name.value_or("cuda"));
  if (!kind) return fields.bad("kind", "cpu, cuda, rocm, mps, sim or standin");
  DeviceClass made{*model, *kind, 0, std::nullopt, std::nullopt};
  made.memory_bytes = MUSTER_TRY(fields.count("memory_bytes", 0, kBytesMax, 0));
  made.flops_per_second = MUSTER_TRY(fields.rate("flops_per_second"));
  made.memory_bytes_per_second = MUSTER_TRY(fields.rate("memory_bytes_per_second"));
  return made;
}

/// What "classes" defines, and else the catalogue.
class Classes {
 public:
  Status read(const Fields& machine) {
    const auto* list = MUSTER_TRY(machine.list("classes", false));
    if (list == nullptr) return Done{};
    if (list->size() > kMachineClassesMax) {
      return machine.bad("classes", fmt::format("at most {}", with_thousands(kMachineClassesMax)));
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      own_.push_back(MUSTER_TRY(
          read_class(Fields(fmt::format("{}: class {}", machine.place(), i), (*list)[i]))));
    }
    return Done{};
  }

  Result<DeviceClass> find(const std::string& model) const {
    const auto own = std::find_if(own_.begin(), own_.end(),
                                  [&](const DeviceClass& one) { return one.model == model; });
    if (own != own_.end()) return *own;
    return device_class(*MUSTER_TRY(find_gpu(model)));
  }

 private:
  std::vector<DeviceClass> own_;
};

struct ReadNode {
  std::vector<MachineDevice> devices;
  std::vector<const GpuFacts*> gpus;
};

// The file's own classes come before the catalogue, so that a type can be described anew.
Status read_device(const Fields& fields, const Classes& classes, MachineBuilder& builder,
                   ReadNode& node) {
  MUSTER_TRY(fields.only({"model", "count", "free_bytes", "cores", "uuid", "parent"}));
  const auto model = MUSTER_TRY(fields.text("model"));
  if (!model) return fields.bad("model", "a text");
  const auto known = MUSTER_TRY(classes.find(*model));
  MachineDevice device;
  device.device_class = builder.add_class(known);
  device.free_bytes = MUSTER_TRY(fields.count("free_bytes", 0, kBytesMax, known.memory_bytes));
  device.core_count =
      static_cast<std::uint32_t>(MUSTER_TRY(fields.count("cores", 1, kCoresMax, 1)));
  device.uuid = MUSTER_TRY(fields.text("uuid"));
  device.parent = MUSTER_TRY(fields.text("parent"));
  const auto count = MUSTER_TRY(fields.count("count", 1, kNodeDevicesMax, 1));
  if (count > kNodeDevicesMax - node.devices.size()) {
    return fields.bad("count",
                      fmt::format("such that a node has at most {} devices", kNodeDevicesMax));
  }
  if (count > 1 && device.uuid) return fields.bad("count", "1 where there is a uuid");
  const auto gpu = find_gpu(*model);
  node.devices.insert(node.devices.end(), count, device);
  node.gpus.insert(node.gpus.end(), count, gpu ? *gpu : nullptr);
  return Done{};
}

struct WrittenLink {
  LinkLabel label;
  std::optional<double> bytes_per_second;
};

// "NV12" or "NV12:2.4e11".
std::optional<WrittenLink> parse_link(std::string_view text) {
  const auto colon = text.find(':');
  const auto label = parse_link_label(text.substr(0, colon));
  if (!label) return std::nullopt;
  if (colon == std::string_view::npos) return WrittenLink{*label, std::nullopt};
  double bytes = 0.0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, bytes);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(bytes > 0.0) || bytes > kRateMax) {
    return std::nullopt;
  }
  return WrittenLink{*label, bytes};
}

constexpr std::string_view kLinkForm = "X, NV12, XGMI1, PIX, PXB, PHB, NODE or SYS";

Error bad_link(const Fields& node) {
  return node.bad("links", fmt::format("of {}, with X on the diagonal", kLinkForm));
}

// As they were written, row by row.
struct WrittenLinks {
  LinkMatrix matrix;
  std::vector<std::optional<double>> bytes_per_second;

  void add(const WrittenLink& link) {
    matrix.labels.push_back(link.label);
    bytes_per_second.push_back(link.bytes_per_second);
  }
};

NodeLinks links_of(const WrittenLinks& written, const std::vector<const GpuFacts*>& gpus) {
  auto links = links_of(written.matrix, gpus);
  for (std::size_t i = 0; i < links.links.size(); ++i) {
    const auto& bytes = written.bytes_per_second[i];
    if (bytes) links.links[i].bytes_per_second = *bytes;
  }
  return links;
}

// Rows "X NV12 SYS", an element per device, or one text as nvidia-smi prints it.
Result<NodeLinks> read_matrix(const Fields& node, const std::vector<std::string>& rows,
                              const std::vector<const GpuFacts*>& gpus) {
  const auto n = static_cast<std::uint32_t>(gpus.size());
  if (rows.size() != n) return node.bad("links", fmt::format("{} rows, one a device", n));
  WrittenLinks written{{n, {}}, {}};
  for (std::uint32_t row = 0; row < n; ++row) {
    auto words = split(rows[row], ' ');
    std::erase(words, "");
    if (words.size() != n) return node.bad("links", fmt::format("{} words in each row", n));
    for (std::uint32_t column = 0; column < n; ++column) {
      const auto link = parse_link(words[column]);
      if (!link || (link->label.kind == LinkKind::Self) != (row == column)) return bad_link(node);
      written.add(*link);
    }
  }
  auto links = links_of(written, gpus);
  for (std::size_t i = 0; i < links.links.size(); ++i) {
    const auto& other = links.links[i % n * n + i / n];
    if (links.links[i].kind != other.kind || links.links[i].width != other.width ||
        links.links[i].bytes_per_second != other.bytes_per_second) {
      return node.bad("links", "the same in both directions");
    }
  }
  return links;
}

Result<NodeLinks> read_link_of_all(const Fields& node, std::string_view text,
                                   const std::vector<const GpuFacts*>& gpus) {
  const auto link = parse_link(text);
  if (!link || link->label.kind == LinkKind::Self) return bad_link(node);
  const auto n = static_cast<std::uint32_t>(gpus.size());
  WrittenLinks written{{n, {}}, {}};
  for (std::uint32_t row = 0; row < n; ++row) {
    for (std::uint32_t column = 0; column < n; ++column) {
      written.add(row == column ? WrittenLink{{LinkKind::Self, 0}, {}} : *link);
    }
  }
  return links_of(written, gpus);
}

// Four forms, from none to rows: the catalogue's board, one label for every pair, the output of
// nvidia-smi as it is, or a row for each device.
Result<NodeLinks> read_links(const Fields& node, const std::vector<const GpuFacts*>& gpus) {
  const auto* value = node.find("links");
  if (value == nullptr) return links_of(assumed_links(gpus), gpus);
  if (value->is_array()) {
    std::vector<std::string> rows;
    for (const auto& row : *value) {
      if (!row.is_string()) return node.bad("links", "rows of text");
      rows.push_back(row.get<std::string>());
    }
    return read_matrix(node, rows, gpus);
  }
  if (!value->is_string()) return node.bad("links", "rows, a link for all, or a printed matrix");
  const auto& text = value->get_ref<const std::string&>();
  if (text.find('\n') != std::string::npos) {
    const auto matrix = MUSTER_TRY(parse_link_matrix(text));
    if (matrix.device_count != gpus.size()) {
      return node.bad("links", fmt::format("a matrix of {} GPUs", gpus.size()));
    }
    return links_of(matrix, gpus);
  }
  return read_link_of_all(node, text, gpus);
}

Status read_node(const Fields& fields, const Classes& classes, MachineBuilder& builder) {
  MUSTER_TRY(fields.only({"count", "host_bytes", "devices", "links"}));
  const auto* devices = MUSTER_TRY(fields.list("devices", true));
  ReadNode node;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    MUSTER_TRY(read_device(Fields(fmt::format("{} device {}", fields.place(), i), (*devices)[i]),
                           classes, builder, node));
  }
  const auto count = MUSTER_TRY(fields.count("count", 1, kMachineDevicesMax, 1));
  const auto host_bytes = MUSTER_TRY(fields.count("host_bytes", 0, kBytesMax, 0));
  auto links = MUSTER_TRY(read_links(fields, node.gpus));
  return builder.add_nodes(count, node.devices, std::move(links), host_bytes);
}

// Devices with a uuid are never folded: each must keep its own.
bool is_alike(const MachineDevice& a, const MachineDevice& b) {
  return a.device_class == b.device_class && a.free_bytes == b.free_bytes &&
         a.core_count == b.core_count && !a.uuid && !b.uuid && a.parent == b.parent;
}

Json device_json(const Machine& machine, const MachineDevice& device, std::uint32_t count) {
  Json made{{"model", machine.classes[device.device_class].model},
            {"free_bytes", device.free_bytes}};
  if (count > 1) made["count"] = count;
  if (device.core_count > 1) made["cores"] = device.core_count;
  if (device.uuid) made["uuid"] = *device.uuid;
  if (device.parent) made["parent"] = *device.parent;
  return made;
}

// The rate goes with each label: without it a reader would take the catalogue's.
Json links_json(const NodeLinks& links) {
  Json rows = Json::array();
  for (std::uint32_t a = 0; a < links.device_count; ++a) {
    std::string row;
    for (std::uint32_t b = 0; b < links.device_count; ++b) {
      const auto& link = links.between(a, b);
      if (b > 0) row += " ";
      row += link_label_name({link.kind, link.width});
      if (a != b) row += fmt::format(":{}", link.bytes_per_second);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Runs of equal devices become one entry with a count, so a large machine stays a short file.
Json node_json(const Machine& machine, const MachineNode& node, std::uint32_t count) {
  Json devices = Json::array();
  const auto* first = machine.devices.data() + node.first_device;
  for (std::uint32_t i = 0; i < node.device_count;) {
    auto end = i + 1;
    while (end < node.device_count && is_alike(first[i], first[end])) ++end;
    devices.push_back(device_json(machine, first[i], end - i));
    i = end;
  }
  Json made{{"devices", std::move(devices)},
            {"host_bytes", node.host_bytes},
            {"links", links_json(machine.node_links[node.links])}};
  if (count > 1) made["count"] = count;
  return made;
}

// Only neighbours are folded, so the order of nodes, and with it every device's index, is kept.
bool is_alike(const Machine& machine, const MachineNode& a, const MachineNode& b) {
  const auto* devices = machine.devices.data();
  return a.device_count == b.device_count && a.links == b.links && a.host_bytes == b.host_bytes &&
         std::equal(devices + a.first_device, devices + a.first_device + a.device_count,
                    devices + b.first_device,
                    [](const auto& x, const auto& y) { return is_alike(x, y); });
}

}  // namespace

Result<Machine> parse_machine_json(std::string_view file, std::string_view text) {
  const auto object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded() || !object.is_object()) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: not a JSON object", file)};
  }
  const Fields fields(std::string(file), object);
  MUSTER_TRY(fields.only({"muster_machine", "name", "classes", "nodes", "network_bytes_per_second",
                          "host_link_bytes_per_second"}));
  if (MUSTER_TRY(fields.count("muster_machine", kFormat, kFormat, 0)) != kFormat) {
    return fields.bad("muster_machine", "1, the version of the format");
  }
  Classes classes;
  MUSTER_TRY(classes.read(fields));
  const auto name = MUSTER_TRY(fields.text("name"));
  MachineBuilder builder(name.value_or(std::string(file)));
  const auto* nodes = MUSTER_TRY(fields.list("nodes", true));
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    MUSTER_TRY(
        read_node(Fields(fmt::format("{}: node {}", file, i), (*nodes)[i]), classes, builder));
  }
  auto& machine = builder.machine();
  if (machine.devices.empty()) return fields.bad("nodes", "a list with at least one device");
  machine.network_bytes_per_second = MUSTER_TRY(fields.rate("network_bytes_per_second"));
  machine.host_link_bytes_per_second = MUSTER_TRY(fields.rate("host_link_bytes_per_second"));
  return builder.take();
}

std::string machine_json(const Machine& machine) {
  Json classes = Json::array();
  for (const auto& one : machine.classes) {
    Json made{{"model", one.model},
              {"kind", device_kind_name(one.kind)},
              {"memory_bytes", one.memory_bytes}};
    if (one.flops_per_second) made["flops_per_second"] = *one.flops_per_second;
    if (one.memory_bytes_per_second) made["memory_bytes_per_second"] = *one.memory_bytes_per_second;
    classes.push_back(std::move(made));
  }
  Json nodes = Json::array();
  for (std::size_t i = 0; i < machine.nodes.size();) {
    auto end = i + 1;
    while (end < machine.nodes.size() && is_alike(machine, machine.nodes[i], machine.nodes[end])) {
      ++end;
    }
    nodes.push_back(node_json(machine, machine.nodes[i], static_cast<std::uint32_t>(end - i)));
    i = end;
  }
  Json made{{"muster_machine", kFormat},
            {"name", machine.name},
            {"classes", std::move(classes)},
            {"nodes", std::move(nodes)}};
  if (machine.network_bytes_per_second) {
    made["network_bytes_per_second"] = *machine.network_bytes_per_second;
  }
  if (machine.host_link_bytes_per_second) {
    made["host_link_bytes_per_second"] = *machine.host_link_bytes_per_second;
  }
  return made.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
