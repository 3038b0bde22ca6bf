#pragma once

#include <plait/model/families/family.hpp>
#include <plait/model/files/gguf_metadata.hpp>
#include <plait/model/files/model_files.hpp>
#include <plait/model/tensor_map.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// A tensor of a GGUF file that is to be made of parts of a model's tensors.
struct planned_tensor {
    /// Rows that follow each other in the new tensor; of a vector, values.
    struct part {
        tensor_ref from;
        std::int64_t rows = 0;
        /// Of rotated heads: their rows in halves become rows in pairs. Elements of a head, and those that turn; 0: no.
        std::int64_t head = 0, turned = 0;

        /// The row of `from` that becomes row `r`.
        std::int64_t source(std::int64_t r) const noexcept;
    };

    std::string name;
    std::vector<std::int64_t> dims; ///< columns first
    std::vector<part> parts;
    std::vector<float> values; ///< instead of parts: what no tensor of the model has
    bool vector = false;       ///< rows are single values, in F32 whatever is asked for
    bool as_it_is = false;     ///< a tensor of a GGUF file that keeps its type, whatever is asked for
};

/// A GGUF file that says what a model is: its keys and its tensors, before their types are chosen.
struct gguf_plan {
    std::string architecture; ///< as `general.architecture` names it
    gguf_metadata keys;
    std::vector<planned_tensor> tensors;
};

/// The plan of the same model: of a GGUF file its own keys and tensors; of a Hugging Face folder those that llama.cpp's
/// converter gives the family (convert_hf_to_gguf.py is the source of the names and of the order of rows), without
/// `tokenizer.ggml.*`. Errors: errc::unsupported, naming what it is, for a family or a feature that is not written.
gguf_plan plan_gguf(model_files const& files, described_model const& model);

/// The families that can be written from a Hugging Face folder, as `architectures` names them.
std::vector<std::string_view> written_architectures();

} // namespace plait
