#include <plait/apps/convert/options.hpp>

#include <plait/apps/parsing.hpp>

#include <map>
#include <utility>

namespace plait::converting {
namespace {

constexpr auto notes =
    R"(IN is a GGUF file, the first of several, or a Hugging Face folder; OUT is the GGUF file to write, which replaces one
that is there only when it is whole and has been read back. Vectors stay in F32, and a matrix whose rows do not
fit the blocks of a quantised type becomes F16.

Exit status:
  0  done
  1  a file or the memory failed
  2  the command line is wrong)";

std::map<std::string, std::optional<ggml_type>> const types{{"keep", std::nullopt},    {"f32", ggml_type::f32},
                                                            {"f16", ggml_type::f16},   {"bf16", ggml_type::bf16},
                                                            {"q8_0", ggml_type::q8_0}, {"q4_1", ggml_type::q4_1}};

} // namespace

command_line parse(int count, char const* const* arguments, std::string const& version)
{
    settings out;
    std::string type = "keep";
    std::string name;
    CLI::App app("Writes a language model as a GGUF file.", "plait-convert");
    app.footer(notes);
    app.set_version_flag("--version", "plait-convert " + version);
    app.add_option("IN", out.in, "The model")->type_name("PATH")->required();
    app.add_option("OUT", out.out, "The file to write")->type_name("FILE")->required();
    app.add_option("--type", type, "Of the matrices; keep: what they have")
        ->type_name("TYPE")
        ->check(CLI::IsMember(types))
        ->capture_default_str();
    auto* const name_option =
        app.add_option("--name", name, "What the model is called; default: what it was")->type_name("TEXT");

    command_line result;
    auto const complain = [&] {
        if (out.in.empty()) throw CLI::ValidationError("IN", "is empty");
        if (out.out.empty()) throw CLI::ValidationError("OUT", "is empty");
    };
    auto const shown = [](char const* what) { return std::string(what); };
    if (!parse_into(result, app, count, arguments, exit_usage, complain, shown)) return result;
    out.how.type = types.at(type);
    if (name_option->count() > 0) out.how.name = name;
    result.given = std::move(out);
    return result;
}

} // namespace plait::converting
