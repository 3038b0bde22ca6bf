#include <plait/apps/chat/context.hpp>

#include <plait/actors/error.hpp>
#include <plait/engine/engine.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/files/model_files.hpp>

namespace plait::chat {

namespace {

constexpr std::int64_t least_context = 256;

bool fits(engine_options const& options)
{
    try {
        plan(options);
        return true;
    } catch (error const& e) {
        if (e.condition() == errc::never_fits) return false;
        throw;
    }
}

} // namespace

std::optional<std::int64_t> largest_context(engine_options options)
{
    auto spec = describe(open_model(options.model)).spec;
    apply(options.overrides, spec);
    options.context = spec.context;
    while (true) {
        if (fits(options)) return options.context;
        options.context /= 2;
        if (options.context < least_context) return std::nullopt;
    }
}

} // namespace plait::chat
