// Reads the settings file by the events of its parser and not by nodes: every key has its line
// then, and there are no anchors that could multiply a small file into a large one. Exceptions of
// yaml-cpp end here.
// A setting's value is gathered as a tree of bounded depth and then rewritten into the text that
// the environment would have, so that each setting has one parser. The order of events decides
// what a scalar is: a key where none waits for its value, else that value.

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "config/config.h"
#include "config/yaml_value.h"

namespace muster {
namespace {

// A mapping, in it a list, in it a mapping, in it a list: the devices of a model.
constexpr std::size_t kDepthMost = 4;

using Kind = YamlValue::Kind;

// Takes the events of one mapping of settings and nothing else. Reading events instead of nodes
// gives the line of every key, and leaves no room for anchors that multiply.
class SettingsReader final : public YAML::EventHandler {
 public:
  explicit SettingsReader(const std::string& file_name) : file_name_(file_name) {}

  Status status() const { return fault_ ? Status(*fault_) : Status(Done{}); }
  std::vector<GivenValue> take() { return std::move(given_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (!is_open_) return;  // an empty file
    if (!awaits_value()) return fail(mark.line + 1, "a key is missing");
    // `mark` is where a value would have begun: the next line
    fail(line_of_key(), fmt::format("{} has no value", key_name()));
  }

  // An alias can make a short file stand for gigabytes, and settings have no use for it.
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark.line + 1, "references (*name) are not allowed here");
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    if (!is_open_) return fail(mark.line + 1, "expected lines of the form \"name: value\"");
    if (!awaits_value()) return take_key(mark.line + 1, value);
    put({Kind::Plain, value, line_of_key_or(mark)});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    if (!is_open_) {
      return fail(mark.line + 1, "expected lines of the form \"name: value\", found a list");
    }
    if (!awaits_value()) return fail(mark.line + 1, "a key must be a plain name");
    begin(Kind::List, mark);
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    if (!is_open_) {
      is_open_ = true;
      return;
    }
    if (!awaits_value()) return fail(mark.line + 1, "a key must be a plain name");
    begin(Kind::Mapping, mark);
  }
  void OnMapEnd() override {
    if (stack_.empty()) {
      is_open_ = false;
    } else {
      end();
    }
  }

 private:
  // Of a list or mapping inside a setting's value; the settings themselves need no such frame.
  struct Frame {
    YamlValue value;
    std::optional<std::string> key;  // of a mapping: read, its value not yet
    int key_line = 0;
  };

  std::string place(int line) const { return fmt::format("{}:{}", file_name_, line); }

  bool awaits_value() const {
    if (stack_.empty()) return key_.has_value();
    return stack_.back().value.kind == Kind::List || stack_.back().key.has_value();
  }
  std::string key_name() const {
    if (stack_.empty() || !stack_.back().key) return *key_;
    return fmt::format("{}: {}", *key_, *stack_.back().key);
  }
  int line_of_key() const {
    return stack_.empty() || !stack_.back().key ? key_line_ : stack_.back().key_line;
  }
  // A value of a list has no key: it stands where it begins.
  int line_of_key_or(const YAML::Mark& mark) const {
    const bool is_in_list = !stack_.empty() && stack_.back().value.kind == Kind::List;
    return is_in_list ? mark.line + 1 : line_of_key();
  }

  void take_key(int line, const std::string& name) {
    if (!stack_.empty()) {
      auto& frame = stack_.back();
      const auto& keys = frame.value.keys;
      if (std::find(keys.begin(), keys.end(), name) != keys.end()) {
        return fail(line, fmt::format("{}: {} stands twice", *key_, name));
      }
      frame.key = name;
      frame.key_line = line;
      return;
    }
    key_ = name;
    key_line_ = line;
    setting_ = find_setting(name);
    if (setting_ != nullptr) return;
    fail(line, unknown_settings_text(std::vector<std::string>{name}));
  }

  void begin(Kind kind, const YAML::Mark& mark) {
    // Told before its contents are: what is in it does not matter.
    if (stack_.empty()) {
      const auto allowed = setting_text(*setting_, {kind, "", mark.line + 1}, file_name_);
      if (!allowed) return fail(allowed.error());
    }
    if (stack_.size() + 1 >= kDepthMost) {
      return fail(mark.line + 1, fmt::format("{}: too many levels", *key_));
    }
    stack_.push_back({.value = {kind, "", line_of_key_or(mark)}, .key = std::nullopt});
  }

  void end() {
    auto value = std::move(stack_.back().value);
    stack_.pop_back();
    put(std::move(value));
  }

  // A finished value goes to the list or mapping around it, or is the whole value of a setting.
  void put(YamlValue value) {
    if (!stack_.empty()) {
      auto& frame = stack_.back();
      if (frame.value.kind == Kind::Mapping) frame.value.keys.push_back(*frame.key);
      frame.key.reset();
      frame.value.values.push_back(std::move(value));
      return;
    }
    auto text = setting_text(*setting_, value, file_name_);
    if (!text) return fail(text.error());
    given_.push_back({setting_->id, std::move(*text), place(key_line_)});
    key_.reset();
  }

  // The first fault counts. The parser cannot be stopped but by an exception, which stays in this
  // file.
  void fail(int line, const std::string& message) {
    fail(Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", place(line), message)});
  }
  void fail(const Error& fault) {
    fault_ = fault;
    throw YAML::Exception(YAML::Mark::null_mark(), fault.message);
  }

  const std::string& file_name_;
  std::vector<GivenValue> given_;
  bool is_open_ = false;            // the mapping of settings has begun
  std::optional<std::string> key_;  // of a setting: read, its value not yet
  int key_line_ = 0;
  const Setting* setting_ = nullptr;  // of key_
  std::vector<Frame> stack_;
  std::optional<Error> fault_;
};

}  // namespace

// A fault of ours comes out of the parser as an exception too; `status` tells it apart from
// broken YAML and keeps its own message.
Result<std::vector<GivenValue>> parse_config_yaml(const std::string& text,
                                                  const std::string& file_name) {
  SettingsReader reader(file_name);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    int document_count = 0;
    while (parser.HandleNextDocument(reader)) {
      if (++document_count > 1) {
        return Error{ErrorKind::InvalidArgument,
                     file_name + ": more than one document (a line \"---\" begins another)"};
      }
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
