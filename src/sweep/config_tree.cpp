// A configuration as a tree that keeps its lines, so that every later message can name the place.
// It is read by the parser's events and not by its nodes: those follow references, by which a small
// file can stand for a large one. Depth and size are bounded. Exceptions of yaml-cpp end here.
#include "sweep/config_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::size_t kDepthMost = 8;
constexpr std::size_t kValuesMost = 100'000;
constexpr std::size_t kKeysMost = 2'000;  // of a mapping: each is compared with all before it

using Kind = ConfigNode::Kind;

class TreeReader final : public YAML::EventHandler {
 public:
  TreeReader(const std::string& text, const std::string& file_name)
      : text_(text), file_name_(file_name) {}

  Status status() const { return fault_ ? Status(*fault_) : Status(Done{}); }
  ConfigNode take() { return std::move(root_); }

  // The parser takes anything behind a value that is whole for another document.
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (!std::exchange(has_document_, true)) return;
    const auto rest = rest_of_line(mark);
    if (mark.column == 0 && rest.starts_with("---")) {
      return fail(mark.line + 1, "more than one document (a line \"---\" begins another)");
    }
    fail(mark.line + 1, fmt::format("something stands behind the value: {}", excerpt(rest)));
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (awaits_key()) return fail(mark.line + 1, "a key is missing");
    put({.kind = Kind::Nothing, .line = line_of(mark)});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark.line + 1, "references (*name) are not allowed here");
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    if (awaits_key()) return take_key(mark.line + 1, value);
    put({.kind = Kind::Plain, .text = value, .line = line_of(mark)});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    begin(Kind::List, mark);
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    begin(Kind::Mapping, mark);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Frame {
    ConfigNode node;
    std::optional<std::string> key = {};  // of a mapping: read, its value not yet
    int key_line = 0;
  };

  bool awaits_key() const {
    return !stack_.empty() && stack_.back().node.kind == Kind::Mapping && !stack_.back().key;
  }

  // A value stands at its key, which may be on a line before it.
  int line_of(const YAML::Mark& mark) const {
    const bool has_key = !stack_.empty() && stack_.back().key;
    return has_key ? stack_.back().key_line : mark.line + 1;
  }

  void take_key(int line, const std::string& name) {
    auto& frame = stack_.back();
    if (std::ranges::find(frame.node.keys, name) != frame.node.keys.end()) {
      return fail(line, fmt::format("{} stands twice", name));
    }
    if (frame.node.keys.size() >= kKeysMost) return fail(line, "too many keys");
    frame.key = name;
    frame.key_line = line;
  }

  void begin(Kind kind, const YAML::Mark& mark) {
    if (awaits_key()) return fail(mark.line + 1, "a key must be a plain name");
    if (stack_.size() >= kDepthMost) return fail(mark.line + 1, "too many levels");
    stack_.push_back({.node = {.kind = kind, .line = line_of(mark)}});
  }

  void end() {
    auto node = std::move(stack_.back().node);
    stack_.pop_back();
    put(std::move(node));
  }

  void put(ConfigNode node) {
    if (++count_ > kValuesMost) return fail(node.line, "too many values");
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    auto& frame = stack_.back();
    if (frame.node.kind == Kind::Mapping) frame.node.keys.push_back(*frame.key);
    frame.key.reset();
    frame.node.values.push_back(std::move(node));
  }

  /// What stands at the mark and behind it.
  std::string rest_of_line(const YAML::Mark& mark) const {
    const auto lines = split(text_, '\n');
    const auto at = static_cast<std::size_t>(mark.line);
    if (at >= lines.size()) return "";
    const auto& line = lines[at];
    const auto column = std::min(static_cast<std::size_t>(mark.column), line.size());
    return std::string(trim(std::string_view(line).substr(column)));
  }

  // The parser stops at nothing but an exception, which stays in this file.
  void fail(int line, const std::string& message) {
    fault_ = Error{ErrorKind::InvalidArgument, fmt::format("{}:{}: {}", file_name_, line, message)};
    throw YAML::Exception(YAML::Mark::null_mark(), message);
  }

  const std::string& text_;
  const std::string& file_name_;
  bool has_document_ = false;
  ConfigNode root_;
  std::vector<Frame> stack_;
  std::size_t count_ = 0;
  std::optional<Error> fault_;
};

}  // namespace

Result<ConfigNode> parse_config_tree(const std::string& text, const std::string& file_name) {
  if (const auto at = invalid_utf8_at(text)) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*at), '\n');
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}:{}: not valid UTF-8: save it as UTF-8", file_name, line)};
  }
  TreeReader reader(text, file_name);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(reader)) {
    }
  } catch (const YAML::Exception& error) {
    MUSTER_TRY(reader.status());
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}:{}: no YAML: {}", file_name, error.mark.line + 1, error.msg)};
  } catch (const std::exception& error) {
    return Error{ErrorKind::Internal, fmt::format("{}: {}", file_name, error.what())};
  }
  return reader.take();
}

}  // namespace muster
