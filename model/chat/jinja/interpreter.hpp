#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <plait/model/chat/jinja/ast.hpp>
#include <plait/model/chat/jinja/function.hpp>
#include <plait/model/chat/jinja/text_builder.hpp>
#include <plait/model/chat/jinja/value.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plait::jinja {

/// The variables set at one level: the template, an iteration of a loop, a macro call. Lookups go outwards.
struct scope {
    std::shared_ptr<scope> outer;
    std::vector<std::pair<std::string_view, value>> variables; ///< names point into the tree or to literals

    /// Null when no level has it. Both are linear, so they count the variables passed.
    value const* find(budget& b, std::string_view name) const;
    void put(budget& b, std::string_view name, value item);
};

/// Runs one rendering of a template. Not shared between threads; the tree it reads is.
class interpreter {
public:
    /// `now` is what `strftime_now` formats; without it that function raises.
    interpreter(budget& b, std::optional<std::chrono::sys_seconds> now)
        : budget_(b)
        , now_(now)
    {
    }

    ~interpreter();

    interpreter(interpreter const&) = delete;
    interpreter& operator=(interpreter const&) = delete;

    /// Renders `body` with `variables` defined. Throws `failure`; `where()` then says at which place.
    text_builder render(block const& body, std::vector<std::pair<std::string_view, value>> variables);

    /// The place in the template that is being evaluated.
    place where() const noexcept { return where_; }

    // For built-in functions, filters and tests:

    /// What this rendering has used so far.
    budget& cost() noexcept { return budget_; }

    std::optional<std::chrono::sys_seconds> now() const noexcept { return now_; }

    /// Calls a function, method or macro.
    value call(value const& callee, arguments const& given);

    /// subject | name(given).
    value apply_filter(std::string_view name, value const& subject, arguments const& given);

    /// subject is name(given).
    bool apply_test(std::string_view name, value const& subject, arguments const& given);

    /// A namespace that dies with this rendering, whatever refers to it.
    value make_name_space(name_space n);

private:
    enum class flow { next, break_loop, continue_loop };
    class frame;

    flow execute(block const& body);
    flow execute(statement const& s);
    flow execute_conditional(statement const& s);
    flow execute_loop(statement const& s);
    flow execute_scoped(block const& body);
    void execute_call(statement const& s);
    void execute_with(statement const& s);
    void define_macro(statement const& s);
    value captured(block const& body);
    value macro_value(macro_definition const& m);
    value call_macro(function const& f, arguments const& given);

    value evaluate(expression const& e);
    value evaluate_name(expression const& e);
    value evaluate_list(expression const& e);
    value evaluate_dict(expression const& e);
    value evaluate_slice(expression const& e);
    value evaluate_call(expression const& e);
    value evaluate_filter(expression const& e, value const* block_text);
    value evaluate_test(expression const& e);
    value evaluate_arithmetic(expression const& e);
    value evaluate_concatenation(expression const& e);
    value evaluate_comparison(expression const& e);
    value evaluate_conditional(expression const& e);
    arguments evaluate_arguments(argument_expressions const& a);

    void assign(expression const& target, value v);

    /// What `item`, which has been assigned to `target`, is as a value: unpacked things become tuples.
    value target_value(expression const& target, value const& item);

    void emit(std::string_view text);
    void enter(std::shared_ptr<scope> s) { scope_ = std::move(s); }

    budget& budget_;
    std::optional<std::chrono::sys_seconds> now_;
    place where_;
    unsigned depth_ = 0;
    std::shared_ptr<scope> scope_;
    text_builder* out_ = nullptr;
    // Scopes that macros refer to and namespaces can form cycles; they are emptied at the end.
    std::deque<std::shared_ptr<scope>> captured_scopes_;
    std::deque<std::shared_ptr<name_space>> name_spaces_;
};

} // namespace plait::jinja
