#pragma once

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/apps/chat/answer_view.hpp>
#include <plait/apps/chat/console.hpp>
#include <plait/apps/chat/conversation.hpp>
#include <plait/apps/chat/options.hpp>
#include <plait/apps/chat/report.hpp>
#include <plait/apps/chat/signals.hpp>
#include <plait/apps/chat/terminal.hpp>
#include <plait/engine/engine.hpp>
#include <plait/streams/trace_file.hpp>

#include <memory>
#include <optional>
#include <string>

namespace plait::chat {

/// What is a terminal, and may be given colours.
struct surroundings {
    bool interactive = false;     ///< a person types, and reads the answer
    bool output_terminal = false; ///< standard output
    bool error_terminal = false;
    bool coloured = false; ///< of those that are terminals

    /// `given`: there is a prompt on the command line.
    static surroundings of_process(bool given);
};

/// The chat, from loading to leaving: a coroutine on the loop of `runtime::run`, which hears of signals from a loop of
/// its own and reads and writes through another, so that neither ever holds up tokens.
class program {
public:
    /// `screen` is there where a person types. All of them outlive this.
    program(runtime& home, settings given, surroundings where, held_signals const& to_stop, terminal const* screen);

    /// Runs to the end and gives the exit status. Throws error for what makes the program fail.
    task<int> run();

private:
    enum class phase : std::uint8_t { busy, reading, answering };

    task<> watch_signals();
    void on_signal(int number);
    void leave(int status);

    task<> talk();
    task<std::string> one_prompt();
    task<> load();
    void show_progress(load_progress now);
    void clear_progress();

    task<> answer_once(std::string text);
    task<> converse();
    task<std::optional<std::string>> read_message();
    task<> obey(std::string const& line);
    task<> take_turn(std::string text);
    task<> show_statistics();

    request make_request() const;
    request make_request(std::span<chat_message const> messages) const;
    task<std::string> stream(request what);
    task<> explain_end();

    task<> note(std::string text);
    task<> print(std::string text);

    runtime& home_;
    settings settings_;
    surroundings where_;
    held_signals const& held_signals_;
    terminal const* screen_;

    std::shared_ptr<wakers> wakers_;
    std::shared_ptr<waker> closing_; ///< ends the reading of signals
    ref<console> console_;
    ref<signal_source> signals_;

    trace_file trace_;
    std::optional<engine> engine_;
    std::string tools_; ///< that the model may call, as JSON
    conversation talk_;
    totals totals_;
    std::optional<summary> last_;
    int shown_percent_ = -1;
    bool mid_line_ = false; ///< standard output is

    phase phase_ = phase::busy;
    scope* work_ = nullptr;           ///< what leaving cancels
    generation* answering_ = nullptr; ///< what Ctrl-C stops
    bool stopped_ = false;            ///< Ctrl-C has stopped this answer
    bool leaving_ = false;
    bool over_ = false; ///< /exit, or the end of the input
    int status_ = exit_ok;
};

} // namespace plait::chat
