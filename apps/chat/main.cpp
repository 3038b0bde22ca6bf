#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/chat/context.hpp>
#include <plait/apps/chat/printable.hpp>
#include <plait/apps/chat/program.hpp>
#include <plait/engine/engine.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace plait;

/// A failure that no task waits for: noted, and the program asked to end.
class last_words {
public:
    explicit last_words(stop_source& end)
        : end_(end)
    {
    }

    void hear(failure const& f) noexcept
    {
        try {
            std::string cause = "unknown failure";
            try {
                std::rethrow_exception(f.exception);
            } catch (std::exception const& e) {
                cause = e.what();
            } catch (...) {
            }
            std::lock_guard lock(mutex_);
            if (text_.empty())
                text_ = std::string(f.actor) + "::" + std::string(f.method) + ", told at " + f.sent_from.file + ":" +
                        std::to_string(f.sent_from.line) + ": " + cause;
        } catch (...) {
            // Without memory for the words there is still the end.
        }
        end_.request_stop();
    }

    std::string text() const
    {
        std::lock_guard lock(mutex_);
        return text_;
    }

private:
    stop_source& end_;
    mutable std::mutex mutex_;
    std::string text_;
};

/// A descriptor below 3 that is closed would be given to the next file, which would then be printed into.
void open_standard_descriptors()
{
    int descriptor = 0;
    do {
        descriptor = ::open("/dev/null", O_RDWR);
    } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor >= 0) ::close(descriptor);
}

void complain(std::string_view message)
{
    std::fprintf(stderr, "plait-chat: %s\n", chat::printable_line(message).c_str());
}

/// One line, and for a model that does not fit the plan that shows it.
void complain(error const& e)
{
    std::string_view message = e.what();
    auto const table = message.find('\n');
    if (e.condition() != errc::never_fits || table == message.npos) return complain(message);
    message = message.substr(table, message.rfind('\n') - table + 1);
    std::fprintf(stderr, "plait-chat: the memory is too small for the model:%s", chat::printable(message).c_str());
}

int print(std::string const& text)
{
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
        complain("standard output cannot be written");
        return chat::exit_failure;
    }
    return chat::exit_ok;
}

int show_plan(engine_options options)
{
    try {
        return print(to_table(plan(options)));
    } catch (error const& e) {
        if (e.condition() != errc::never_fits || options.context != 0) throw;
        auto const context = chat::largest_context(options);
        if (!context) throw;
        options.context = *context;
    }
    std::fprintf(stderr, "The context is %lld tokens, which is what fits in memory.\n",
                 static_cast<long long>(options.context));
    return print(to_table(plan(options)));
}

int run(chat::settings given)
{
    if (given.show_plan) return show_plan(given.engine);
    auto const where = chat::surroundings::of_process(given.prompt.has_value());
    chat::held_signals const to_stop;
    std::optional<chat::terminal> screen;
    if (where.interactive) screen.emplace();

    stop_source end;
    last_words last(end);
    runtime_options options;
    options.on_unhandled = [&last](failure const& f) { last.hear(f); };
    runtime home(options);
    chat::program program(home, std::move(given), where, to_stop, screen ? &*screen : nullptr);
    try {
        int const status = home.run(program.run(), end.token());
        if (last.text().empty()) return status;
    } catch (...) {
        if (last.text().empty()) throw;
    }
    complain(last.text());
    return chat::exit_failure;
}

} // namespace

int main(int argc, char** argv)
{
    open_standard_descriptors();
    std::signal(SIGPIPE, SIG_IGN); // a reader that goes away is a failed write, which is told
    try {
        auto line = chat::parse(argc, argv, PLAIT_VERSION);
        if (!line.error.empty()) complain(line.error);
        if (!line.given) return line.output.empty() ? line.status : print(line.output);
        return run(std::move(*line.given));
    } catch (error const& e) {
        complain(e);
    } catch (std::exception const& e) {
        complain(e.what());
    }
    return chat::exit_failure;
}
