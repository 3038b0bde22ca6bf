#pragma once

#include <plait/model/files/gguf.hpp>
#include <plait/model/files/hf_directory.hpp>
#include <plait/model/files/tensor_source.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace plait {

/// The files of a model, opened: a GGUF file, all parts of a split one, or a Hugging Face folder. Move-only; what it
/// hands out stays where it is when it moves.
class model_files {
public:
    explicit model_files(gguf_file file);
    explicit model_files(hf_directory folder);

    tensor_source& tensors() noexcept { return *tensors_; }
    tensor_source const& tensors() const noexcept { return *tensors_; }
    /// Names the file or the folder in errors.
    std::string const& source() const noexcept { return tensors_->source(); }

    /// What it is: one of the two, the other is null.
    gguf_file const* gguf() const noexcept { return gguf_; }
    hf_directory const* hf() const noexcept { return hf_; }

    /// The Jinja text of the chat template, empty where there is none. Errors: errc::bad_file where a key that should
    /// hold it is of another type.
    std::string chat_template() const;

    /// tensors() is a quantised_source of what it was. Errors: as its constructor.
    void quantise(std::map<std::string, ggml_type> const& types);

private:
    std::unique_ptr<tensor_source> tensors_;
    gguf_file const* gguf_ = nullptr;
    hf_directory const* hf_ = nullptr;
};

/// Opens a model, whatever its format: `path` is a GGUF file, the first of several, a Hugging Face folder or its
/// config.json. Errors: as gguf_file::open and hf_directory::open.
model_files open_model(std::filesystem::path const& path);

} // namespace plait
