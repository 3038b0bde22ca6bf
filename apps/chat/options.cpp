#include <plait/apps/chat/options.hpp>

#include <plait/apps/chat/printable.hpp>
#include <plait/apps/parsing.hpp>
#include <plait/model/text/utf8.hpp>

#include <cmath>
#include <limits>
#include <sstream>

namespace plait::chat {

namespace {

constexpr auto exit_statuses = R"(Exit status:
  0    done
  1    a file, the input, the memory or the engine failed
  2    the command line is wrong
  130  interrupted by Ctrl-C (another signal that ends it: 128 + its number)

Without --prompt, and with a terminal, it chats; /help lists the commands. Otherwise all of standard input is one
prompt, an end of line at its end left out. An option given twice has its last value.
Only the answer goes to standard output: its text, and each call of a tool as a line of JSON. What a model thinks first
is shown on a terminal only, dimmed or between <think> and </think>; the conversation goes on without it.)";

std::string shown(double value)
{
    std::ostringstream out;
    out << value;
    return out.str();
}

/// A real number from `low` to `high`; the ends count where they are `closed`. Never NaN.
CLI::Validator real(double low, bool low_closed, double high, bool high_closed)
{
    auto const range =
        std::string(low_closed ? "[" : "(") + shown(low) + ", " + shown(high) + (high_closed ? "]" : ")");
    auto check = [=](std::string& text) -> std::string {
        auto const value = number<double>(text);
        bool const good =
            value && (low_closed ? *value >= low : *value > low) && (high_closed ? *value <= high : *value < high);
        return good ? std::string() : text + " is not a number in " + range;
    };
    return CLI::Validator(check, "in " + range);
}

CLI::Validator unsigned_number()
{
    auto check = [](std::string& text) -> std::string {
        return number<std::uint64_t>(text) ? std::string() : text + " is not a whole number from 0 to 2^64-1";
    };
    return CLI::Validator(check, "from 0 to 2^64-1");
}

CLI::Validator words(bool may_be_empty = false)
{
    auto check = [=](std::string& text) -> std::string {
        if (text.empty() && !may_be_empty) return "is empty";
        auto const valid = valid_utf8_prefix(text);
        return valid == text.size() ? std::string() : "not UTF-8 at byte " + std::to_string(valid);
    };
    return CLI::Validator(check, "");
}

CLI::Validator bytes()
{
    auto check = [](std::string& text) -> std::string {
        auto const value = parse_bytes(text);
        if (!value) return text + " is not a size such as 123456, 512MiB or 1.5GiB";
        text = std::to_string(*value);
        return {};
    };
    return CLI::Validator(check, "such as 512MiB");
}

} // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text)
{
    auto const digits = std::min(text.find_first_not_of("0123456789."), text.size());
    auto const value = number<double>(text.substr(0, digits));
    auto unit = text.substr(digits);
    if (!value) return std::nullopt;
    double factor = 1;
    if (!unit.empty() && unit != "B") {
        auto const power = std::string_view("KMGT").find(unit.front());
        unit.remove_prefix(1);
        if (power == std::string_view::npos || (!unit.empty() && unit != "iB")) return std::nullopt;
        factor = std::ldexp(1.0, 10 * (static_cast<int>(power) + 1));
    }
    double const result = *value * factor;
    if (!(result >= 1 && result <= 0x1p62)) return std::nullopt;
    return static_cast<std::int64_t>(result);
}

command_line parse(int count, char const* const* arguments, std::string const& version)
{
    settings out;
    // For small models: some variety, little nonsense.
    out.sampling.temperature = 0.3f;
    out.sampling.top_k = 40;
    out.sampling.top_p = 0.95f;
    out.sampling.min_p = 0.05f;
    out.engine.sequences = 1;

    std::string prompt;
    std::string system;
    std::string kv = "f16";
    std::string mode = "native";
    std::string quantize;
    std::string tools;
    bool no_reasoning = false;
    std::uint64_t seed = 0;

    CLI::App app("Chats with a language model.", "plait-chat");
    app.footer(exit_statuses);
    app.set_version_flag("--version", "plait-chat " + version);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);

    auto* const model =
        app.add_option("--model", out.engine.model, "A GGUF file, the first of several, or a Hugging Face folder")
            ->type_name("PATH")
            ->required();
    auto* const prompt_option =
        app.add_option("--prompt", prompt, "Answers TEXT and leaves")->type_name("TEXT")->check(words());
    auto* const system_option =
        app.add_option("--system", system, "What the model is told first; default: what its template says")
            ->type_name("TEXT")
            ->check(words(true));
    app.add_option("--tools", tools, "What the model may call: a JSON array, as OpenAI describes functions")
        ->type_name("FILE")
        ->check(words());
    app.add_flag("--no-reasoning", no_reasoning,
                 "Asks the model not to think first, and hides its thoughts if it does");
    app.add_option("--max-tokens", out.max_tokens, "Longest answer; default: to the end of the context")
        ->type_name("N")
        ->check(whole(1));
    app.add_option("--stop", out.stop, "Ends an answer before TEXT; may be given several times")
        ->type_name("TEXT")
        ->check(words())
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);

    std::string const sampling = "Sampling";
    app.add_option("--temperature", out.sampling.temperature, "0: the most likely token")
        ->type_name("X")
        ->check(real(0, true, 100, true))
        ->capture_default_str()
        ->group(sampling);
    app.add_option("--top-k", out.sampling.top_k, "Among the N most likely; 0: all")
        ->type_name("N")
        ->check(whole(0, std::numeric_limits<std::int32_t>::max()))
        ->capture_default_str()
        ->group(sampling);
    app.add_option("--top-p", out.sampling.top_p, "Among the most likely that have this probability together")
        ->type_name("X")
        ->check(real(0, false, 1, true))
        ->capture_default_str()
        ->group(sampling);
    app.add_option("--min-p", out.sampling.min_p, "Among those at least this likely relative to the best")
        ->type_name("X")
        ->check(real(0, true, 1, true))
        ->capture_default_str()
        ->group(sampling);
    app.add_option("--repetition-penalty", out.sampling.repetition_penalty, "Above 1: repeats less")
        ->type_name("X")
        ->check(real(0.01, true, 100, true))
        ->capture_default_str()
        ->group(sampling);
    auto* const seed_option = app.add_option("--seed", seed, "The same answers again; default: others each time")
                                  ->type_name("N")
                                  ->check(unsigned_number())
                                  ->group(sampling);

    std::string const machine = "Machine";
    app.add_option("--threads", out.engine.threads, "Default: the processors that this process may use")
        ->type_name("N")
        ->check(whole(1, 1024))
        ->group(machine);
    app.add_option("--context", out.engine.context, "Tokens of the conversation; default: the model's, or what fits")
        ->type_name("N")
        ->check(whole(1))
        ->group(machine);
    add_model_overrides(app, out.engine.overrides, machine);
    app.add_option("--memory", out.engine.memory, "At most; default: most of what is free")
        ->type_name("BYTES")
        ->transform(bytes())
        ->group(machine);
    app.add_option("--kv", kv, "How keys and values are stored")
        ->type_name("TYPE")
        ->check(CLI::IsMember({"f32", "f16", "q8"}))
        ->capture_default_str()
        ->group(machine);
    app.add_option("--numerics", mode, "f32: the reference, slower and larger")
        ->type_name("MODE")
        ->check(CLI::IsMember({"native", "f32"}))
        ->capture_default_str()
        ->group(machine);
    app.add_option("--quantize", quantize, "Makes float matrices smaller while they are loaded; q8_0 or q4_1")
        ->type_name("TYPE")
        ->check(CLI::IsMember({"q8_0", "q4_1"}))
        ->group(machine);
    app.add_option("--tp", out.engine.spread.tensor, "Devices that share every layer; a host device each")
        ->type_name("N")
        ->check(whole(1, 64))
        ->capture_default_str()
        ->group(machine);
    app.add_option("--pp", out.engine.spread.pipeline, "Stages of layers that follow each other, each on --tp devices")
        ->type_name("N")
        ->check(whole(1, 1024))
        ->capture_default_str()
        ->group(machine);
    app.add_option("--replicas", out.engine.replicas, "Of all that, with their own weights; requests are shared out")
        ->type_name("N")
        ->check(whole(1, 64))
        ->capture_default_str()
        ->group(machine);
    app.add_option("--sum-parts", out.engine.spread.sum_parts,
                   "Summands of a product that devices share; every --tp that divides N answers alike; 0: --tp")
        ->type_name("N")
        ->check(whole(0, 1024))
        ->capture_default_str()
        ->group(machine);
    add_trace_option(app, out.trace)->group(machine);
    app.add_flag("--plan", out.show_plan, "Prints what the memory is for, and leaves")->group(machine);

    command_line result;
    auto const complain = [&] {
        if (out.engine.model.empty()) throw CLI::ValidationError(model->get_name(), "is empty");
    };
    auto const shown = [](char const* what) { return printable_line(what); };
    if (!parse_into(result, app, count, arguments, exit_usage, complain, shown)) return result;
    if (prompt_option->count() > 0) out.prompt = prompt;
    if (system_option->count() > 0) out.system = system;
    if (!tools.empty()) out.tools = tools;
    out.reasoning = !no_reasoning;
    if (seed_option->count() > 0) out.sampling.seed = seed;
    out.engine.kv = kv == "f32" ? kv_type::f32 : kv == "q8" ? kv_type::q8 : kv_type::f16;
    out.engine.mode = mode == "f32" ? numerics::f32 : numerics::native;
    if (!quantize.empty()) out.engine.quantize = quantize == "q8_0" ? weight_format::q8_0 : weight_format::q4_1;
    result.given = std::move(out);
    return result;
}

} // namespace plait::chat
