#include <plait/apps/inspect/options.hpp>

#include <plait/apps/chat/printable.hpp>
#include <plait/apps/parsing.hpp>

namespace plait::inspecting {
namespace {

constexpr auto notes =
    R"(FILE is a GGUF file, the first of several, or a Hugging Face folder. Without an action it prints what the model
is, its tensors by type, its metadata, its tokenizer and whether it has a chat template.

Perplexity is what llama.cpp's llama-perplexity computes: the text in windows, the second half of each counts.

Exit status:
  0  done
  1  a file, the input, the memory or the engine failed, or --check found something
  2  the command line is wrong)";

CLI::Validator time_of_day()
{
    auto check = [](std::string& text) -> std::string {
        return parse_time(text) ? std::string() : text + " is no time such as 2026-11-30 or 2026-11-30T08:15:00";
    };
    return CLI::Validator(check, "");
}

/// The number of `digits` decimal digits at the front of `text`, which are taken away; -1 where there are none.
int take_number(std::string_view& text, std::size_t digits)
{
    auto const front = text.substr(0, digits);
    if (front.size() != digits || front.find_first_not_of("0123456789") != front.npos) return -1;
    text.remove_prefix(digits);
    return number<int>(front).value_or(-1);
}

bool take(std::string_view& text, char c)
{
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

} // namespace

std::optional<std::chrono::sys_seconds> parse_time(std::string_view text)
{
    using namespace std::chrono;
    auto const y = take_number(text, 4);
    if (y < 0 || !take(text, '-')) return std::nullopt;
    auto const m = take_number(text, 2);
    if (m < 0 || !take(text, '-')) return std::nullopt;
    auto const d = take_number(text, 2);
    if (d < 0) return std::nullopt;
    auto const date = year(y) / month(static_cast<unsigned>(m)) / day(static_cast<unsigned>(d));
    if (!date.ok()) return std::nullopt;
    sys_seconds out = sys_days(date);
    if (text.empty()) return out;
    if (!take(text, 'T') && !take(text, ' ')) return std::nullopt;
    auto const hour = take_number(text, 2);
    if (hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
    auto const minute = take_number(text, 2);
    if (minute < 0 || minute > 59) return std::nullopt;
    int second = 0;
    if (take(text, ':')) second = take_number(text, 2);
    if (second < 0 || second > 59 || !text.empty()) return std::nullopt;
    return out + hours(hour) + minutes(minute) + seconds(second);
}

command_line parse(int count, char const* const* arguments, std::string const& version)
{
    settings out;
    std::string tokenize, render, score, now, bos, eos, mode = "native";
    std::filesystem::path chat_template, tools;
    bool detokenize = false, check = false, no_answer = false;

    CLI::App app("Looks into a language model's file.", "plait-inspect");
    app.footer(notes);
    app.set_version_flag("--version", "plait-inspect " + version);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.add_option("FILE", out.model, "The model")->type_name("PATH")->required();
    app.add_flag("--tensors", out.all_tensors, "Lists every tensor, not only how many there are of each type");

    std::string const actions = "Actions";
    auto* const tokenize_option = app.add_option("--tokenize", tokenize, "The ids of a text; -: of standard input")
                                      ->type_name("TEXT-FILE")
                                      ->group(actions);
    auto* const detokenize_option =
        app.add_flag("--detokenize", detokenize, "The text of the ids on standard input")->group(actions);
    auto* const render_option = app.add_option("--render", render, "The prompt of a JSON array of messages; - as above")
                                    ->type_name("JSON-FILE")
                                    ->group(actions);
    auto* const check_option =
        app.add_flag("--check", check, "Reads all of the model and says what is wrong with it")->group(actions);
    auto* const score_option = app.add_option("--score", score, "The perplexity of a text; - as above")
                                   ->type_name("TEXT-FILE")
                                   ->group(actions);
    std::vector<CLI::Option*> const all{tokenize_option, detokenize_option, render_option, check_option, score_option};
    for (auto* const one : all)
        for (auto* const other : all)
            if (one != other) one->excludes(other);

    std::string const text = "With --tokenize";
    app.add_flag("--special", out.parse_special, "Control tokens are recognised in the text")
        ->needs(tokenize_option)
        ->group(text);
    app.add_flag("--add-special", out.add_special, "Puts the tokens there that the model wants at the ends")
        ->needs(tokenize_option)
        ->group(text);

    std::string const rendering = "With --render";
    auto* const template_option = app.add_option("--template", chat_template, "Instead of the model's")
                                      ->type_name("FILE")
                                      ->needs(render_option)
                                      ->group(rendering);
    auto* const tools_option = app.add_option("--tools", tools, "A JSON array of the tools that are offered")
                                   ->type_name("FILE")
                                   ->needs(render_option)
                                   ->group(rendering);
    app.add_option("--extra", out.extra, "More variables, such as {\"enable_thinking\": false}")
        ->type_name("JSON")
        ->needs(render_option)
        ->group(rendering);
    auto* const bos_option = app.add_option("--bos", bos, "How the template writes it; default: the tokenizer's")
                                 ->type_name("TEXT")
                                 ->needs(render_option)
                                 ->group(rendering);
    auto* const eos_option =
        app.add_option("--eos", eos, "As --bos")->type_name("TEXT")->needs(render_option)->group(rendering);
    auto* const now_option = app.add_option("--now", now, "The time that a template may show; default: none")
                                 ->type_name("TIME")
                                 ->check(time_of_day())
                                 ->needs(render_option)
                                 ->group(rendering);
    app.add_flag("--no-answer", no_answer, "Ends after the last message, not with the beginning of an answer")
        ->needs(render_option)
        ->group(rendering);

    std::string const scoring = "With --score";
    app.add_option("--context", out.context, "Tokens of a window")
        ->type_name("N")
        ->check(whole(4, std::int64_t{1} << 24))
        ->needs(score_option)
        ->capture_default_str()
        ->group(scoring);
    app.add_flag("--per-token", out.per_token, "Prints the log-probability of each token that counts")
        ->needs(score_option)
        ->group(scoring);
    app.add_option("--threads", out.threads, "Default: the processors that this process may use")
        ->type_name("N")
        ->check(whole(1, 1024))
        ->needs(score_option)
        ->group(scoring);
    app.add_option("--numerics", mode, "f32: the reference, slower and larger")
        ->type_name("MODE")
        ->check(CLI::IsMember({"native", "f32"}))
        ->needs(score_option)
        ->group(scoring);
    add_trace_option(app, out.trace)->needs(score_option)->group(scoring);

    std::string const shown_or_scored = "Without an action, and with --score";
    add_model_overrides(app, out.overrides, shown_or_scored);

    command_line result;
    auto const complain = [&] {
        if (out.model.empty()) throw CLI::ValidationError("FILE", "is empty");
        for (auto const* const one : all)
            if (one != score_option && one->count() > 0 && out.overrides != model_overrides())
                throw CLI::ValidationError(one->get_name(), "does not run the model, so its rotation stays");
    };
    auto const shown = [](char const* what) { return chat::printable_line(what); };
    if (!parse_into(result, app, count, arguments, exit_usage, complain, shown)) return result;
    auto const choose = [&](CLI::Option const* option, action what, std::string const& input) {
        if (option->count() == 0) return;
        out.what = what;
        out.input = input;
    };
    choose(tokenize_option, action::tokenize, tokenize);
    choose(detokenize_option, action::detokenize, "-");
    choose(render_option, action::render, render);
    choose(check_option, action::check, "-");
    choose(score_option, action::score, score);
    if (template_option->count() > 0) out.chat_template = chat_template;
    if (tools_option->count() > 0) out.tools = tools;
    if (bos_option->count() > 0) out.bos = bos;
    if (eos_option->count() > 0) out.eos = eos;
    if (now_option->count() > 0) out.now = parse_time(now);
    out.answer_next = !no_answer;
    out.mode = mode == "f32" ? numerics::f32 : numerics::native;
    result.given = std::move(out);
    return result;
}

} // namespace plait::inspecting
