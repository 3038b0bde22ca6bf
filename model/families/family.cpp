#include <plait/model/families/family.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/families/known.hpp>
#include <plait/model/text/quote.hpp>

#include <array>
#include <string>

namespace plait {
namespace {

constexpr std::array known{
    &families::chatglm,   &families::cohere,  &families::cohere2,    &families::gemma,    &families::gemma2,
    &families::gemma3,    &families::glm,     &families::glm4,       &families::glm4_moe, &families::gpt1,
    &families::gpt2,      &families::gpt_oss, &families::gptneox,    &families::granite,  &families::llama,
    &families::mixtral,   &families::olmo2,   &families::phi3,       &families::qwen2,    &families::qwen3,
    &families::qwen3_moe, &families::smollm3, &families::starcoder2,
};

/// What `model`, as its family describes it, is once it is proved.
described_model proved(tensor_source const& file, described_model model)
{
    check(model.spec, errc::bad_file, file.source());
    validate(file, model);
    model.spec.fingerprint = file.fingerprint();
    return model;
}

void add_name(std::string& names, std::string_view name)
{
    if (!name.empty()) names += (names.empty() ? "" : ", ") + std::string(name);
}

} // namespace

std::span<family const* const> known_families() noexcept
{
    return known;
}

described_model describe(gguf_file const& file)
{
    std::string_view const architecture = file.string("general.architecture");
    for (family const* candidate : known)
        if (candidate->describe != nullptr && candidate->architecture == architecture)
            return proved(file, candidate->describe(file));
    std::string names;
    for (family const* candidate : known)
        add_name(names, candidate->architecture);
    throw error(errc::unsupported, file.source() + ": key 'general.architecture': the architecture " +
                                       quote(architecture) + " is not known; known: " + names);
}

described_model describe(hf_directory const& folder)
{
    auto const architectures = folder.config().strings("architectures");
    if (architectures.empty()) throw error(errc::bad_file, folder.config().where("architectures") + ": is empty");
    std::string names;
    for (family const* candidate : known)
        for (std::string_view const name : candidate->hf_architectures) {
            if (name == architectures.front()) return proved(folder, candidate->describe_hf(folder));
            add_name(names, name);
        }
    throw error(errc::unsupported, folder.config().where("architectures") + ": the architecture " +
                                       quote(architectures.front()) + " is not known; known: " + names);
}

described_model describe(model_files const& files)
{
    return files.gguf() != nullptr ? describe(*files.gguf()) : describe(*files.hf());
}

} // namespace plait
