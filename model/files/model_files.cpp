#include <plait/model/files/model_files.hpp>

#include <plait/model/files/quantised_source.hpp>

#include <system_error>
#include <utility>

namespace plait {

model_files::model_files(gguf_file file)
{
    auto owned = std::make_unique<gguf_file>(std::move(file));
    gguf_ = owned.get();
    tensors_ = std::move(owned);
}

model_files::model_files(hf_directory folder)
{
    auto owned = std::make_unique<hf_directory>(std::move(folder));
    hf_ = owned.get();
    tensors_ = std::move(owned);
}

std::string model_files::chat_template() const
{
    if (gguf_ != nullptr) return std::string(gguf_->string("tokenizer.chat_template", ""));
    return hf_->chat_template();
}

void model_files::quantise(std::map<std::string, ggml_type> const& types)
{
    tensors_ = std::make_unique<quantised_source>(std::move(tensors_), types);
}

model_files open_model(std::filesystem::path const& path)
{
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return model_files(hf_directory::open(path));
    if (path.filename() == "config.json") {
        auto const folder = path.parent_path();
        return model_files(hf_directory::open(folder.empty() ? "." : folder));
    }
    return model_files(gguf_file::open(path));
}

} // namespace plait
