#pragma once

#include <plait/model/files/gguf.hpp>
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

/// One model family: the architecture name that files use, and how to read such a file's header.
struct family {
    std::string_view architecture;
    described_model (*describe)(gguf_file const& file);
};

/// The families that plait knows. To add one, write `described_model describe_<family>(gguf_file const&)` in a file
/// of this folder and list it in family.cpp.
std::span<family const> families() noexcept;

/// Reads what model `file` holds, by its `general.architecture`, and proves that the tensors present agree with it.
/// Errors: errc::unsupported for an unknown architecture (named, with the known ones) or a feature that plait does not
/// run; errc::bad_file, naming the key or the tensor, for a header that contradicts itself or the tensors.
described_model describe(gguf_file const& file);

/// Proves that the tensors of `file` are exactly those of `model`: each one mapped is present with the shape that the
/// specification needs, all of its rows are used, and nothing else is there. A stray norm or bias would mean a model
/// that computes something else. Errors: errc::bad_file or errc::unsupported, naming the tensor, the shape expected and
/// the shape found.
void validate(tensor_source const& file, described_model const& model);

} // namespace plait
