#include <plait/apps/inspect/texts.hpp>
#include <plait/model/text/model_tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/inspect/sheet.hpp>
#include <plait/model/chat/builtin_templates.hpp>
#include <plait/model/chat/chat_template.hpp>
#include <plait/model/families/family.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

namespace plait::inspecting {
namespace {

constexpr std::size_t most_input = std::size_t{1} << 30;

/// What closes at the end of a scope, but for standard input.
struct opened {
    int descriptor;
    ~opened()
    {
        if (descriptor > STDIN_FILENO) ::close(descriptor);
    }
};

} // namespace

std::string read_input(std::string const& from)
{
    auto const name = from == "-" ? std::string("standard input") : from;
    opened const file{from == "-" ? STDIN_FILENO : ::open(from.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.descriptor < 0)
        throw error(errno == ENOENT ? errc::not_found : errc::io,
                    name + ": " + std::error_code(errno, std::system_category()).message());
    std::string out;
    std::array<char, 1 << 16> some{};
    for (;;) {
        auto const count = ::read(file.descriptor, some.data(), some.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw error(errc::io, name + ": " + std::error_code(errno, std::system_category()).message());
        if (count == 0) return out;
        out.append(some.data(), static_cast<std::size_t>(count));
        if (out.size() > most_input) throw error(errc::invalid_argument, name + ": more than 1 GiB");
    }
}

std::string write_ids(std::span<std::int32_t const> ids)
{
    std::string out;
    for (auto const id : ids)
        out += (out.empty() ? "" : " ") + std::to_string(id);
    return out;
}

std::vector<std::int32_t> read_ids(std::string_view text)
{
    constexpr std::string_view between = " \t\r\n,[]";
    std::vector<std::int32_t> out;
    for (auto at = text.find_first_not_of(between); at != text.npos; at = text.find_first_not_of(between)) {
        text.remove_prefix(at);
        auto const word = text.substr(0, text.find_first_of(between));
        text.remove_prefix(word.size());
        std::int32_t id = 0;
        auto const [end, failed] = std::from_chars(word.data(), word.data() + word.size(), id);
        if (failed != std::errc() || end != word.data() + word.size())
            throw error(errc::invalid_argument, "id " + std::to_string(out.size()) + ": '" +
                                                    std::string(word.substr(0, 40)) + "' is no whole number");
        out.push_back(id);
    }
    return out;
}

std::string template_of(model_files const& files)
{
    auto source = files.chat_template();
    if (!source.empty()) return source;
    try {
        return std::string(builtin_template(describe(files).spec));
    } catch (error const& why) {
        if (why.condition() != errc::unsupported && why.condition() != errc::bad_file) throw;
        return {}; // a model that plait doesn't run has no template of plait's
    }
}

std::string render_messages(model_files const& files, settings const& how, std::string messages)
{
    auto source = how.chat_template ? read_input(how.chat_template->string()) : template_of(files);
    if (source.empty()) throw error(errc::unsupported, files.source() + ": there is no chat template");
    auto const program = chat_template::parse(std::move(source));
    render_input input;
    input.messages_json = std::move(messages);
    input.add_generation_prompt = how.answer_next;
    if (how.tools) input.tools_json = read_input(how.tools->string());
    input.extra_json = how.extra;
    input.now = how.now;
    if (how.bos) input.bos_token = *how.bos;
    if (how.eos) input.eos_token = *how.eos;
    if (!how.bos || !how.eos) {
        tokenizer const text(read_tokenizer(files));
        if (!how.bos && text.bos()) input.bos_token = text.piece(*text.bos());
        if (!how.eos && text.eos()) input.eos_token = text.piece(*text.eos());
    }
    return program.render(input);
}

} // namespace plait::inspecting
