#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "base/text.h"
#include "config/config.h"

namespace muster {
namespace {

// Takes the events of one flat mapping and nothing else. Reading events instead of nodes gives the
// line of every key, and leaves no room for anchors that multiply.
class SettingsReader final : public YAML::EventHandler {
 public:
  explicit SettingsReader(const std::string& file_name) : file_name_(file_name) {}

  Status status() const { return fault_ ? Status(*fault_) : Status(Done{}); }
  std::vector<GivenValue> take() { return std::move(given_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (depth_ == 0) return;  // an empty file
    if (!key_) return fail(mark, "a key is missing");
    YAML::Mark key_mark = mark;
    key_mark.line = key_line_;  // `mark` is where a value would have begun: the next line
    fail(key_mark, fmt::format("{} has no value", *key_));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "references (*name) are not allowed here");
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    if (depth_ == 0) return fail(mark, "expected lines of the form \"name: value\"");
    if (!key_) return take_key(mark, value);
    given_.push_back({setting_->id, value, place(key_line_)});
    key_.reset();
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    fail(mark, key_ ? fmt::format("{} takes a single value, not a list", *key_)
                    : "expected lines of the form \"name: value\", found a list");
  }
  void OnSequenceEnd() override {}

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    if (depth_ > 0) {
      fail(mark, key_ ? fmt::format("{} takes a single value, not a mapping", *key_)
                      : "a key must be a plain name");
    }
    ++depth_;
  }
  void OnMapEnd() override { --depth_; }

 private:
  std::string place(int line) const { return fmt::format("{}:{}", file_name_, line + 1); }

  void take_key(const YAML::Mark& mark, const std::string& name) {
    key_ = name;
    key_line_ = mark.line;
    setting_ = find_setting(name);
    if (setting_ != nullptr) return;
    const auto nearest = nearest_name(name, setting_names());
    fail(mark, fmt::format("unknown setting: {}{}", name,
                           nearest ? fmt::format("; did you mean {}?", *nearest)
                                   : "; `muster config` lists those there are"));
  }

  // The first fault counts. The parser cannot be stopped but by an exception, which stays in this
  // file.
  void fail(const YAML::Mark& mark, const std::string& message) {
    fault_ = Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", place(mark.line), message)};
    throw YAML::Exception(mark, message);
  }

  const std::string& file_name_;
  std::vector<GivenValue> given_;
  std::optional<std::string> key_;  // read, its value not yet
  int key_line_ = 0;
  const Setting* setting_ = nullptr;  // of key_
  int depth_ = 0;
  std::optional<Error> fault_;
};

}  // namespace

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
