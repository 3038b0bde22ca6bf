#include <plait/model/families/family.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/families/llama.hpp>
#include <plait/model/text/quote.hpp>

#include <array>
#include <string>

namespace plait {
namespace {

constexpr std::array known{
    family{"llama", describe_llama},
};

} // namespace

std::span<family const> families() noexcept
{
    return known;
}

described_model describe(gguf_file const& file)
{
    std::string_view const architecture = file.string("general.architecture");
    for (family const& candidate : known) {
        if (candidate.architecture != architecture) continue;
        described_model model = candidate.describe(file);
        check(model.spec, errc::bad_file, file.source());
        validate(file, model);
        model.spec.fingerprint = file.fingerprint();
        return model;
    }
    std::string names;
    for (family const& candidate : known)
        names += (names.empty() ? "" : ", ") + std::string(candidate.architecture);
    throw error(errc::unsupported, file.source() + ": key 'general.architecture': the architecture " +
                                       quote(architecture) + " is not known; known: " + names);
}

} // namespace plait
