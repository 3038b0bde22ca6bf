#pragma once

#include <plait/model/files/gguf.hpp>
#include <plait/model/files/hf_directory.hpp>
#include <plait/model/files/model_files.hpp>
#include <plait/model/model_spec.hpp>
#include <plait/model/tensor_map.hpp>

#include <span>
#include <string_view>

namespace plait {

/// What a file's header says about its model.
struct described_model {
    model_spec spec;
    tensor_map tensors;
};

/// One model family: the names that files have for it, and how to read what they say of the model.
struct family {
    std::string_view architecture; ///< `general.architecture` of a GGUF file; empty where there are none
    described_model (*describe)(gguf_file const& file) = nullptr;
    std::span<std::string_view const> hf_architectures{}; ///< in `architectures` of a config.json; may be none
    described_model (*describe_hf)(hf_directory const& folder) = nullptr;
};

/// The families that plait knows (families/known.hpp).
std::span<family const* const> known_families() noexcept;

/// Reads what model `file` holds, by its `general.architecture`, and proves that the tensors present agree with it.
/// Errors: errc::unsupported for an unknown architecture (named, with the known ones) or a feature that plait does not
/// run; errc::bad_file, naming the key or the tensor, for a header that contradicts itself or the tensors.
described_model describe(gguf_file const& file);
/// The same of a Hugging Face folder, by the first of the `architectures` of its config.json.
described_model describe(hf_directory const& folder);
/// The same, whatever the files are.
described_model describe(model_files const& files);

/// Proves that the tensors of `file` are exactly those of `model`: each one mapped is present with the shape that the
/// specification needs, all of its rows are used, and nothing else is there. A stray norm or bias would mean a model
/// that computes something else. Errors: errc::bad_file or errc::unsupported, naming the tensor, the shape expected and
/// the shape found.
void validate(tensor_source const& file, described_model const& model);

} // namespace plait
