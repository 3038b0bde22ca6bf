#include <plait/apps/chat/tools.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/chat/chat_template.hpp>

#include <fstream>

namespace plait::chat {

std::string read_tools(std::filesystem::path const& file)
{
    constexpr std::size_t most = std::size_t{1} << 20;
    std::ifstream from(file, std::ios::binary);
    if (!from) throw error(errc::not_found, "--tools " + file.string() + ": can't be read");
    std::string out(most + 1, '\0');
    from.read(out.data(), static_cast<std::streamsize>(out.size()));
    if (from.bad()) throw error(errc::io, "--tools " + file.string() + ": can't be read");
    out.resize(static_cast<std::size_t>(from.gcount()));
    if (out.size() > most) throw error(errc::invalid_argument, "--tools " + file.string() + ": longer than 1 MiB");
    render_input input;
    input.tools_json = out.empty() ? "null" : out; // which is no array either
    bool none = true;
    try {
        none = chat_template::parse("{{ tools is none }}").render(input) == "True";
    } catch (error const&) {
    }
    if (none) throw error(errc::invalid_argument, "--tools " + file.string() + ": not a JSON array");
    return out;
}

} // namespace plait::chat
