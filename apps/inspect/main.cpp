#include <plait/actors/error.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/chat/printable.hpp>
#include <plait/apps/inspect/checks.hpp>
#include <plait/apps/inspect/options.hpp>
#include <plait/apps/inspect/perplexity.hpp>
#include <plait/apps/inspect/sheet.hpp>
#include <plait/apps/inspect/texts.hpp>
#include <plait/model/text/model_tokenizer.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include <unistd.h>

namespace {

using namespace plait;

void complain(std::string_view message)
{
    std::fprintf(stderr, "plait-inspect: %s\n", chat::printable_line(message).c_str());
}

void print(std::string const& text)
{
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw error(errc::io, "standard output cannot be written");
}

/// Text that may hold anything: as it is for a program, and made safe for a terminal.
void print_content(std::string const& text)
{
    print(::isatty(STDOUT_FILENO) == 1 ? chat::printable(text) + "\n" : text);
}

int show(inspecting::settings const& how)
{
    auto const files = open_model(how.model);
    print(inspecting::show_model(files, how.overrides));
    print("\n" + inspecting::show_tensors(files, how.all_tensors));
    print("\n" + inspecting::show_metadata(files));
    print("\n" + inspecting::show_text(files));
    return inspecting::exit_ok;
}

int check(inspecting::settings const& how)
{
    auto const files = open_model(how.model);
    auto const found = inspecting::check_all(files);
    for (auto const& line : found.checked)
        print(chat::printable_line(line) + "\n");
    for (auto const& finding : found.findings)
        complain(finding);
    print(found.findings.empty() ? "nothing is wrong\n" : std::to_string(found.findings.size()) + " findings\n");
    return found.findings.empty() ? inspecting::exit_ok : inspecting::exit_failure;
}

int run(inspecting::settings const& how)
{
    using inspecting::action;
    switch (how.what) {
    case action::show:
        return show(how);
    case action::check:
        return check(how);
    case action::tokenize: {
        tokenizer const text(read_tokenizer(open_model(how.model)));
        auto const ids = text.encode(inspecting::read_input(how.input), {how.add_special, how.parse_special});
        print(inspecting::write_ids(ids) + "\n");
        break;
    }
    case action::detokenize: {
        tokenizer const text(read_tokenizer(open_model(how.model)));
        print_content(text.decode(inspecting::read_ids(inspecting::read_input("-"))));
        break;
    }
    case action::render:
        print_content(inspecting::render_messages(open_model(how.model), how, inspecting::read_input(how.input)));
        break;
    case action::score: {
        auto text = inspecting::read_input(how.input);
        runtime home;
        home.run(inspecting::score_text(home, how, std::move(text), print));
        break;
    }
    }
    return inspecting::exit_ok;
}

} // namespace

int main(int argc, char** argv)
{
    std::signal(SIGPIPE, SIG_IGN); // a reader that goes away is a failed write, which is told
    try {
        auto const line = inspecting::parse(argc, argv, PLAIT_VERSION);
        if (!line.error.empty()) complain(line.error);
        if (line.given) return run(*line.given);
        print(line.output);
        return line.status;
    } catch (std::exception const& failure) {
        complain(failure.what());
    }
    return inspecting::exit_failure;
}
