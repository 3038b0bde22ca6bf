#include <plait/apps/chat/program.hpp>

#include <plait/actors/dump/dump.hpp>
#include <plait/actors/error.hpp>
#include <plait/apps/chat/context.hpp>
#include <plait/apps/chat/printable.hpp>
#include <plait/apps/chat/tools.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace plait::chat {

namespace {

constexpr auto help = R"(/help          this list
/reset         forgets the conversation
/system TEXT   what the model is told first, from now on; without TEXT: what its template says
/stats         tokens, speed and memory
/exit          leaves, as Ctrl-D does
A line that ends in \ goes on in the next; a message that begins with / is written with //.
Ctrl-C stops an answer, and leaves at an empty prompt.
)";

bool is_terminal(int descriptor)
{
    return ::isatty(descriptor) == 1;
}

std::string without_line_end(std::string text)
{
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

/// Decoration: not worth a failure.
void put(int descriptor, std::string_view text) noexcept
{
    [[maybe_unused]] auto const written = ::write(descriptor, text.data(), text.size());
}

/// What an exception says, for a person.
std::string message_of(std::exception_ptr const& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (std::exception const& e) {
        return e.what();
    } catch (...) {
        return "unknown failure";
    }
}

} // namespace

surroundings surroundings::of_process(bool given)
{
    surroundings out;
    out.output_terminal = is_terminal(STDOUT_FILENO);
    out.error_terminal = is_terminal(STDERR_FILENO);
    out.interactive = !given && out.output_terminal && is_terminal(STDIN_FILENO);
    auto const* const terminal = std::getenv("TERM");
    auto const* const no_colour = std::getenv("NO_COLOR"); // https://no-color.org
    out.coloured = terminal != nullptr && *terminal != '\0' && std::strcmp(terminal, "dumb") != 0 &&
                   (no_colour == nullptr || *no_colour == '\0');
    return out;
}

program::program(runtime& home, settings given, surroundings where, held_signals const& to_stop, terminal const* screen)
    : home_(home)
    , settings_(std::move(given))
    , where_(where)
    , held_signals_(to_stop)
    , screen_(screen)
    , wakers_(std::make_shared<wakers>())
    , closing_(std::make_shared<waker>())
    , trace_(settings_.trace)
{
    talk_.set_system(settings_.system);
    settings_.engine.record = trace_.record();
    if (settings_.tools) tools_ = read_tools(*settings_.tools);
}

task<int> program::run()
{
    console_ = home_.spawn_on<console>(home_.new_loop("plait-console"), wakers_);
    signals_ = home_.spawn_on<signal_source>(home_.new_loop("plait-signals"), held_signals_.descriptor(), closing_);

    auto work = [this](scope& s) -> task<> {
        work_ = &s;
        co_await talk();
    };
    auto all = [this, &work](scope& s) -> task<> {
        // A failure elsewhere stops this task; the two loops that block have to be told.
        auto tell_loops = [this] {
            wakers_->leave.wake();
            closing_->wake();
        };
        stop_callback on_stop(s.stop(), tell_loops);
        s.start(watch_signals());
        auto outcome = co_await as_result(with_scope(work));
        work_ = nullptr;
        // What still runs is cancelled, and its device work joined.
        result<void> closed;
        if (engine_) closed = co_await as_result(shield(engine_->close(false)));
        engine_.reset();
        closing_->wake();
        if (outcome.failure() && !(leaving_ && is_cancelled(outcome.failure())))
            std::rethrow_exception(outcome.failure());
        if (closed.failure()) std::rethrow_exception(closed.failure());
    };
    auto outcome = co_await as_result(with_scope(all));
    co_await stop(std::move(console_));
    co_await stop(std::move(signals_));
    if (mid_line_ && where_.output_terminal) put(STDOUT_FILENO, "\n"); // left in the middle of an answer
    try {
        trace_.write();
    } catch (...) {
        if (!outcome.failure()) throw; // why the run failed is told, and not that its trace can't be written
    }
    std::move(outcome).value();
    co_return status_;
}

task<> program::watch_signals()
{
    while (true) {
        int const number = co_await ask<&signal_source::next>(signals_);
        if (number == 0) co_return;
        if (number == SIGUSR1) {
            auto const now = co_await shield(dump(home_));
            put(STDERR_FILENO, now);
        } else {
            on_signal(number);
        }
    }
}

void program::on_signal(int number)
{
    if (leaving_) { // asked again: at once
        if (screen_ != nullptr) screen_->restore();
        std::_Exit(status_);
    }
    if (number != SIGINT) {
        leave(128 + number);
    } else if (phase_ == phase::reading) {
        wakers_->interrupt.wake();
    } else if (phase_ == phase::answering && where_.interactive && !stopped_) {
        stopped_ = true;
        if (answering_ != nullptr) answering_->cancel();
    } else {
        leave(exit_interrupted);
    }
}

void program::leave(int status)
{
    leaving_ = true;
    status_ = status;
    wakers_->leave.wake();
    if (answering_ != nullptr) answering_->cancel();
    if (work_ != nullptr) work_->request_stop();
}

task<> program::talk()
{
    if (where_.interactive) {
        auto const complaint =
            co_await ask<&console::begin_editing>(console_, screen_, history_file(), where_.coloured);
        if (!complaint.empty()) co_await note("The history is not kept: " + complaint);
        co_await load();
        co_await converse();
    } else {
        co_await load(); // first: what is wrong with the model does not wait for the end of the input
        auto text = co_await one_prompt();
        co_await answer_once(std::move(text));
    }
}

task<std::string> program::one_prompt()
{
    if (settings_.prompt) co_return *settings_.prompt;
    auto read = co_await ask<&console::read_all>(console_);
    auto text = without_line_end(std::move(read));
    if (text.empty()) throw error(errc::invalid_argument, "standard input: there is nothing to answer");
    co_return text;
}

task<> program::load()
{
    auto report = [this](load_progress now) { show_progress(now); };
    auto options = settings_.engine;
    auto opened = co_await as_result(open(home_, options, report));
    if (options.context == 0 && opened.error() == errc::never_fits) {
        if (auto const fits = largest_context(options)) {
            options.context = *fits;
            opened = co_await as_result(open(home_, options, report));
            clear_progress();
            if (opened)
                co_await note("The context is " + std::to_string(*fits) + " tokens, which is what fits in memory.");
        }
    }
    clear_progress();
    engine_.emplace(std::move(opened).value());
    auto const& model = engine_->info();
    if (model.chat == nullptr) {
        for (auto const& [option, given] :
             {std::pair("--system", settings_.system.has_value()), std::pair("--tools", settings_.tools.has_value())})
            if (given)
                throw error(errc::unsupported, std::string(option) + ": the model has no chat template to put it in");
        co_await note("The model has no chat template: it continues your text instead of answering.");
    }
}

/// One line of standard error that is written over, where that is a terminal.
void program::show_progress(load_progress now)
{
    if (!where_.error_terminal || now.now != load_progress::phase::loading) return;
    auto const percent = static_cast<int>(100 * now.part);
    if (percent == shown_percent_) return;
    shown_percent_ = percent;
    auto const line = "\rloading " + printable_line(settings_.engine.model.filename().string()) + " " +
                      std::to_string(percent) + " %";
    put(STDERR_FILENO, line);
}

void program::clear_progress()
{
    if (shown_percent_ < 0) return;
    shown_percent_ = -1;
    auto const width = printable_line(settings_.engine.model.filename().string()).size() + 16;
    auto const line = "\r" + std::string(width, ' ') + "\r";
    put(STDERR_FILENO, line);
}

request program::make_request() const
{
    request out;
    out.sampling = settings_.sampling;
    out.max_tokens = settings_.max_tokens;
    out.stop = settings_.stop;
    return out;
}

request program::make_request(std::span<chat_message const> messages) const
{
    auto out = make_request();
    out.messages.assign(messages.begin(), messages.end());
    out.tools_json = tools_;
    if (!settings_.reasoning) out.think = false;
    return out;
}

task<std::string> program::stream(request what)
{
    phase_ = phase::answering;
    stopped_ = false;
    auto answer = co_await engine_->submit(std::move(what));
    answering_ = &answer;
    struct ended {
        program& self;
        ~ended() { self.answering_ = nullptr; }
    } const guard{*this};
    if (stopped_) answer.cancel();

    answer_view view({where_.output_terminal, where_.output_terminal && where_.coloured, settings_.reasoning});
    while (true) {
        auto const piece = co_await answer.next();
        if (!piece) break;
        auto shown = view.show(*piece);
        if (!shown.empty()) co_await print(std::move(shown));
    }
    last_ = answer.result();
    totals_.add(*last_);
    auto rest = view.finish();
    if (!rest.empty()) co_await print(std::move(rest));
    phase_ = phase::busy;
    co_return view.said();
}

/// Says why an answer ended, where that is not for its own reasons.
task<> program::explain_end()
{
    auto const reason = last_->choices.empty() ? finish_reason::none : last_->choices.front().finish;
    auto const used = last_->prompt_tokens + last_->generated_tokens;
    if (reason == finish_reason::failed)
        throw error(errc::engine_failed, "the answer ended: " + last_->failure.message());
    if (reason == finish_reason::length && used >= engine_->info().context) {
        co_await note("The answer ends here: the context of " + std::to_string(engine_->info().context) +
                      " tokens is full.");
    } else if (reason == finish_reason::length && where_.interactive) {
        co_await note("The answer ends here: --max-tokens is " + std::to_string(settings_.max_tokens) + ".");
    } else if (reason == finish_reason::cancelled && where_.interactive) {
        co_await note("Stopped.");
    }
}

task<> program::answer_once(std::string text)
{
    auto what = make_request();
    if (engine_->info().chat != nullptr) {
        talk_.ask(std::move(text));
        what = make_request(talk_.messages());
    } else {
        what.text = std::move(text);
    }
    co_await stream(std::move(what));
    co_await explain_end();
}

task<> program::converse()
{
    auto const& model = engine_->info();
    auto const name = model.spec.name.empty() ? settings_.engine.model.filename().string() : model.spec.name;
    co_await note(name + " (" + model.spec.architecture + "), " + std::to_string(model.context) +
                  " tokens of context. /help lists the commands.");
    while (!over_) {
        auto message = co_await read_message();
        if (!message) continue;
        phase_ = phase::busy;
        auto turn =
            message->starts_with('/') && !message->starts_with("//") ? obey(*message) : take_turn(std::move(*message));
        auto const outcome = co_await as_result(std::move(turn));
        phase_ = phase::busy;
        if (!outcome.failure()) continue;
        // A turn that fails by itself is not the end; everything else is.
        auto const code = outcome.error();
        bool const goes_on = code == errc::never_fits || code == errc::template_failed ||
                             code == errc::invalid_argument || code == errc::unsupported || code == errc::overloaded;
        if (!goes_on) std::rethrow_exception(outcome.failure());
        co_await note(message_of(outcome.failure()));
    }
}

/// The next message, nothing where there is none: a line that was given up, an empty one, or the end.
task<std::optional<std::string>> program::read_message()
{
    std::string message;
    bool more = false;
    do {
        phase_ = phase::reading;
        std::string const prompt = more ? "| " : "> ";
        auto line = co_await ask<&console::read_line>(console_, prompt);
        phase_ = phase::busy;
        // Ctrl-C right behind the end of a line is meant for the line.
        if (wakers_->interrupt.take() && line.how == line_input::ending::complete)
            line.how = line_input::ending::interrupted;
        switch (line.how) {
        case line_input::ending::complete:
            break;
        case line_input::ending::end:
            co_await print("\n");
            over_ = true;
            co_return std::nullopt;
        case line_input::ending::abandoned:
            co_await print("^C\n");
            if (!more) leave(exit_interrupted); // in a message's later lines it gives up the message
            over_ = !more;
            co_return std::nullopt;
        case line_input::ending::interrupted:
            co_await print("^C\n");
            co_return std::nullopt;
        case line_input::ending::left:
            mid_line_ = true; // behind the prompt
            co_return std::nullopt;
        }
        more = line.text.ends_with('\\');
        if (more) line.text.back() = '\n';
        message += line.text;
    } while (more);
    if (message.find_first_not_of(" \t\n") == std::string::npos) co_return std::nullopt;
    co_return message;
}

task<> program::obey(std::string const& line)
{
    auto const end = line.find_first_of(" \t\n");
    auto const command = line.substr(0, end);
    auto const from = end == std::string::npos ? end : line.find_first_not_of(" \t\n", end);
    std::string text = from == std::string::npos ? std::string() : line.substr(from);
    if (command == "/help") {
        co_await print(help);
    } else if (command == "/exit" || command == "/quit") {
        over_ = true;
    } else if (command == "/reset") {
        talk_.reset();
        co_await note("The conversation begins anew.");
    } else if (command == "/system") {
        if (engine_->info().chat == nullptr) throw error(errc::unsupported, "/system: the model has no chat template");
        std::string const remark =
            text.empty() ? "The system message is what the model's template says." : "The system message is set.";
        talk_.set_system(text.empty() ? std::nullopt : std::optional(std::move(text)));
        co_await note(remark);
    } else if (command == "/stats") {
        co_await show_statistics();
    } else {
        co_await note(command + " is no command; /help lists them.");
    }
}

task<> program::show_statistics()
{
    auto const now = co_await engine_->stats();
    co_await print(printable(statistics(last_, totals_, engine_->info(), now, resident_bytes())));
}

task<> program::take_turn(std::string text)
{
    if (text.starts_with("//")) text.erase(0, 1);
    auto const& model = engine_->info();
    if (model.chat == nullptr) {
        auto what = make_request();
        what.text = std::move(text);
        co_await stream(std::move(what));
        co_await explain_end();
        co_return;
    }

    talk_.ask(std::move(text));
    // The turn is taken back unless something came of it: then the conversation goes on as if it had not been.
    struct undo {
        conversation& talk;
        bool armed = true;
        ~undo()
        {
            if (armed) talk.withdraw();
        }
    } guard{talk_};
    auto const count = [this](auto messages) {
        return static_cast<std::int64_t>(engine_->prompt_of(make_request(messages)).size());
    };
    auto room = model.context / 4;
    if (settings_.max_tokens > 0) room = std::min(room, settings_.max_tokens);
    auto const forgotten = talk_.make_room(count, model.context, room);
    if (forgotten > 0) {
        auto const which = forgotten == 1 ? std::string("turn was") : std::to_string(forgotten) + " turns were";
        co_await note("The context of " + std::to_string(model.context) + " tokens is full: the oldest " + which +
                      " forgotten.");
    }
    auto what = make_request(talk_.messages());
    auto answer = co_await stream(std::move(what));
    if (!answer.empty()) {
        guard.armed = false;
        talk_.answer(std::move(answer));
    }
    co_await explain_end();
}

/// A remark of the program itself, apart from answers.
task<> program::note(std::string text)
{
    auto line = printable(text);
    if (where_.error_terminal && where_.coloured) line = "\033[2m" + line + "\033[0m";
    co_await ask<&console::write>(console_, line + "\n", true);
}

task<> program::print(std::string text)
{
    mid_line_ = !text.ends_with('\n');
    co_await ask<&console::write>(console_, std::move(text), false);
}

} // namespace plait::chat
