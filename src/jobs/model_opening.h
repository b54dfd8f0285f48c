#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "jobs/text_encoder.h"
#include "modelfile/model_folder.h"
#include "spec/encoder_spec.h"
#include "wire/messages.h"

namespace muster {

/// Which model, and what of its own description is overruled.
struct ModelChoice {
  std::string model;  // folder or hub id
  std::optional<std::uint32_t> length_max = {};
  std::optional<Pooling> pooling = {};
  std::optional<bool> normalize = {};
  std::optional<std::string> prompt_name = {};  // of the model's prompts
};

/// A model as the parent needs it: no weight is read.
struct OpenedModel {
  ModelFolder folder;
  Pooling pooling = Pooling::Mean;
  bool normalize = false;
  std::string prompt_name;                    // empty: none
  std::string hash;                           // by `open_texts`
  std::unique_ptr<TextEncoder> text_encoder;  // by `open_texts`
};

/// Finds the model and reads its description: milliseconds.
///
/// Errors: those of `find_model` and `read_model_folder`; InvalidArgument for a prompt that the
/// model does not have.
Result<OpenedModel> find_and_read(const ModelChoice& choice);

/// Reads the tokenizer and hashes the weights: up to seconds for a large model from a cold disk.
///
/// Errors: those of `Tokenizer::load` and `model_hash`; InvalidArgument for a length above the
/// model's maximum; Corrupt when tokenizer and model disagree.
Status open_texts(const ModelChoice& choice, OpenedModel& model);

/// The name of the prompt that is asked for, else the model's default; empty: none.
///
/// Errors: InvalidArgument, naming the nearest one that the model has.
Result<std::string> find_prompt(const SentenceSpec& sentence,
                                const std::optional<std::string>& asked);

/// The first of these names that the model has a prompt of.
std::optional<std::string> preferred_prompt(const SentenceSpec& sentence,
                                            const std::vector<std::string>& names);

/// The text of a prompt; empty for the empty name.
std::string prompt_text(const SentenceSpec& sentence, const std::string& name);

/// How a worker is told of the model; the device is filled in for each.
ModelRequest model_request(const OpenedModel& model);

}  // namespace muster
