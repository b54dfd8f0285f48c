// simdjson's DOM, not its on-demand parser: it checks the whole text, and a benchmark that counts
// half an answer as one would be wrong.
#include "bench/load/answer_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <utility>

#include "bench/load/event_stream.h"

namespace muster {
namespace {

using simdjson::dom::element;

constexpr std::size_t kBodyBytesMost = 256 << 20;  // of an answer that is kept to be read
constexpr std::size_t kErrorShown = 500;           // bytes of what a stream says of an error

std::optional<std::int64_t> usage_of(const element& json, const char* name) {
  std::int64_t count = 0;
  if (json["usage"][name].get(count) != simdjson::SUCCESS) return std::nullopt;
  return count;
}

// An error may be as long as an event, and the first sentences of failures go into results.
std::string shown_error(const element& error) {
  auto text = simdjson::minify(error);
  if (text.size() <= kErrorShown) return text;
  text.resize(kErrorShown);
  return text + "…";
}

class AnyReader final : public AnswerReader {
 public:
  void on_body(std::string_view /*bytes*/, double /*at*/) override {}
  AnswerFacts finish() override { return {}; }
  void drop() override {}
};

class ListReader final : public AnswerReader {
 public:
  ListReader(std::string list, std::size_t count) : list_(std::move(list)), count_(count) {}

  void on_body(std::string_view bytes, double /*at*/) override {
    if (body_.size() <= kBodyBytesMost) body_ += bytes;
  }

  AnswerFacts finish() override {
    auto facts = read();
    body_.clear();
    return facts;
  }

  void drop() override { body_.clear(); }

 private:
  AnswerFacts read() {
    AnswerFacts facts;
    element json;
    if (body_.size() > kBodyBytesMost) {
      facts.problem = "the answer is too long to be read";
    } else if (parser_.parse(body_).get(json) != simdjson::SUCCESS) {
      facts.problem = "the answer is no JSON";
    } else if (simdjson::dom::array items; json[list_].get(items) != simdjson::SUCCESS) {
      facts.problem = fmt::format("the answer has no list \"{}\"", list_);
    } else if (items.size() != count_) {
      facts.problem =
          fmt::format("the answer has {} items in \"{}\", not {}", items.size(), list_, count_);
    } else {
      facts.input_tokens = usage_of(json, "prompt_tokens");
      if (!facts.input_tokens) facts.input_tokens = usage_of(json, "total_tokens");
    }
    return facts;
  }

  const std::string list_;
  const std::size_t count_;
  simdjson::dom::parser parser_;
  std::string body_;
};

class StreamReader final : public AnswerReader {
 public:
  StreamReader(bool keeps_text, std::size_t bytes_most)
      : keeps_text_(keeps_text), bytes_most_(bytes_most) {}

  void on_body(std::string_view bytes, double at) override {
    if (facts_.problem) return;  // the first one counts, and nothing behind it is kept
    byte_count_ += bytes.size();
    if (byte_count_ > bytes_most_) {
      facts_.problem = "the stream is too long to be read";
      return;
    }
    events_.put(bytes);
    while (!facts_.problem) {
      const auto event = events_.next();
      if (!event) break;
      take(*event, at);
    }
    if (!facts_.problem && events_.is_too_long())
      facts_.problem = "the stream has an event without an end";
  }

  AnswerFacts finish() override {
    if (!facts_.problem && !is_done_) facts_.problem = "the stream ended before its [DONE]";
    if (!facts_.problem && facts_.token_times.empty()) facts_.problem = "the stream has no text";
    auto facts = std::exchange(facts_, {});
    drop();
    return facts;
  }

  void drop() override {
    facts_ = {};
    events_ = {};
    byte_count_ = 0;
    is_done_ = false;
  }

 private:
  void take(const std::string& event, double at) {
    if (event == "[DONE]") {
      is_done_ = true;
      return;
    }
    element json;
    if (parser_.parse(event).get(json) != simdjson::SUCCESS) {
      facts_.problem = "the stream has an event that is no JSON";
      return;
    }
    if (element error; json["error"].get(error) == simdjson::SUCCESS && !error.is_null()) {
      facts_.problem = "the stream reports an error: " + shown_error(error);
      return;
    }
    if (const auto count = usage_of(json, "prompt_tokens")) facts_.input_tokens = count;
    if (const auto count = usage_of(json, "completion_tokens")) facts_.output_tokens = count;
    const auto text = text_of(json);
    if (text.empty()) return;
    facts_.token_times.push_back(at);
    if (keeps_text_) facts_.text += text;
  }

  static std::string_view text_of(const element& json) {
    simdjson::dom::array choices;
    if (json["choices"].get(choices) != simdjson::SUCCESS || choices.size() == 0) return {};
    const element choice = choices.at(0).value_unsafe();
    std::string_view text;
    // vLLM and others stream what a model thinks under a name of its own; it is generated all the
    // same.
    constexpr std::array kNames{"content", "reasoning_content", "reasoning"};
    for (const char* name : kNames) {
      if (choice["delta"][name].get(text) == simdjson::SUCCESS && !text.empty()) return text;
    }
    if (choice["text"].get(text) == simdjson::SUCCESS) return text;
    return {};
  }

  const bool keeps_text_;
  const std::size_t bytes_most_;
  EventStream events_;
  std::size_t byte_count_ = 0;
  simdjson::dom::parser parser_;
  AnswerFacts facts_;
  bool is_done_ = false;
};

}  // namespace

std::unique_ptr<AnswerReader> any_answer_reader() { return std::make_unique<AnyReader>(); }

std::unique_ptr<AnswerReader> list_answer_reader(std::string list, std::size_t count) {
  return std::make_unique<ListReader>(std::move(list), count);
}

std::unique_ptr<AnswerReader> stream_answer_reader(bool keeps_text, std::size_t bytes_most) {
  return std::make_unique<StreamReader>(keeps_text, bytes_most);
}

}  // namespace muster
