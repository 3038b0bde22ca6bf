#include <algorithm>
#include <plait/model/chat/jinja/filters.hpp>
#include <plait/model/chat/jinja/globals.hpp>
#include <plait/model/chat/jinja/interpreter.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/predicates.hpp>

namespace plait::jinja {

namespace {

using kind = expression_kind;

bool any_foreign(arguments const& given)
{
    auto const named = [](auto const& n) { return holds_foreign(n.second); };
    return std::any_of(given.positional.begin(), given.positional.end(), holds_foreign) ||
           std::any_of(given.named.begin(), given.named.end(), named);
}

constexpr unsigned frames_per_level = 4; // a macro call is an expression, a statement, a block and the call itself

} // namespace

/// One activation on the C++ stack. Recursion of every form goes through here.
class interpreter::frame {
public:
    explicit frame(interpreter& in)
        : in_(in)
    {
        in_.budget_.step();
        if (in_.depth_ >= in_.budget_.limits().depth * frames_per_level)
            throw failure("the template nests deeper than its limit");
        ++in_.depth_;
    }

    ~frame() { --in_.depth_; }
    frame(frame const&) = delete;
    frame& operator=(frame const&) = delete;

private:
    interpreter& in_;
};

value const* scope::find(budget& b, std::string_view name) const
{
    for (auto const* s = this; s; s = s->outer.get()) {
        b.step(s->variables.size() / 8);
        for (auto const& [candidate, item] : s->variables) {
            if (candidate == name) return &item;
        }
    }
    return nullptr;
}

void scope::put(budget& b, std::string_view name, value item)
{
    b.step(variables.size() / 8);
    for (auto& [candidate, present] : variables) {
        if (candidate != name) continue;
        present = std::move(item);
        return;
    }
    variables.emplace_back(name, std::move(item));
}

interpreter::~interpreter()
{
    // Macros hold scopes that hold macros, namespaces may hold themselves: cut every such edge. What is cut out is kept
    // until all edges are cut, so that releasing a long chain of them does not recurse.
    std::deque<std::vector<std::pair<std::string_view, value>>> variables;
    std::deque<std::vector<std::pair<std::string, value>>> members;
    scope_.reset();
    for (auto const& s : captured_scopes_)
        variables.push_back(std::exchange(s->variables, {}));
    for (auto const& n : name_spaces_)
        members.push_back(std::exchange(n->items, {}));
}

text_builder interpreter::render(block const& body, std::vector<std::pair<std::string_view, value>> variables)
{
    text_builder out;
    out_ = &out;
    scope_ = std::make_shared<scope>(scope{nullptr, std::move(variables)});
    execute(body);
    return out;
}

value interpreter::make_name_space(name_space n)
{
    budget_.allocate(sizeof(name_space) + n.items.size() * 2 * sizeof(value));
    name_spaces_.push_back(std::make_shared<name_space>(std::move(n)));
    return name_spaces_.back();
}

void interpreter::emit(std::string_view text)
{
    budget_.output(out_->size() + text.size());
    out_->append(text, false);
}

// Statements

interpreter::flow interpreter::execute(block const& body)
{
    frame const guard(*this);
    for (auto const& s : body) {
        where_ = s.where;
        auto const how = execute(s);
        if (how != flow::next) return how;
    }
    return flow::next;
}

interpreter::flow interpreter::execute(statement const& s)
{
    budget_.step();
    switch (s.kind) {
    case statement_kind::text:
        emit(s.text);
        break;
    case statement_kind::output:
        append_str(budget_, *out_, evaluate(*s.expressions[0]));
        break;
    case statement_kind::conditional:
        return execute_conditional(s);
    case statement_kind::loop:
        return execute_loop(s);
    case statement_kind::assignment:
        assign(*s.target, evaluate(*s.expressions[0]));
        break;
    case statement_kind::block_assignment: {
        auto text = captured(s.bodies[0]);
        assign(*s.target, s.expressions[0] ? evaluate_filter(*s.expressions[0], &text) : std::move(text));
        break;
    }
    case statement_kind::macro:
        define_macro(s);
        break;
    case statement_kind::call:
        execute_call(s);
        break;
    case statement_kind::filtered: {
        auto const text = captured(s.bodies[0]);
        append_str(budget_, *out_, evaluate_filter(*s.expressions[0], &text));
        break;
    }
    case statement_kind::with:
        execute_with(s);
        break;
    case statement_kind::scoped:
        return execute_scoped(s.bodies[0]);
    case statement_kind::loop_break:
        return flow::break_loop;
    case statement_kind::loop_continue:
        return flow::continue_loop;
    }
    return flow::next;
}

interpreter::flow interpreter::execute_conditional(statement const& s)
{
    for (std::size_t i = 0; i < s.expressions.size(); ++i) {
        if (truthy(evaluate(*s.expressions[i]))) return execute(s.bodies[i]);
    }
    return s.bodies.size() > s.expressions.size() ? execute(s.bodies.back()) : flow::next;
}

interpreter::flow interpreter::execute_loop(statement const& s)
{
    auto const outer = scope_;
    struct restore {
        interpreter& in;
        std::shared_ptr<scope> const& outer;
        ~restore() { in.scope_ = outer; }
    } const guard{*this, outer};

    auto items = iterate(budget_, evaluate(*s.expressions[0]));
    // A scope is used again for the next iteration unless a macro has kept it.
    std::shared_ptr<scope> inner;
    auto const fresh_scope = [&] {
        scope_ = outer;
        if (inner && inner.use_count() == 1) {
            inner->variables.clear();
        } else {
            budget_.allocate(sizeof(scope));
            inner = std::make_shared<scope>(scope{outer, {}});
        }
        scope_ = inner;
    };

    if (s.expressions[1]) {
        std::vector<value> chosen;
        for (auto const& item : items->items) {
            budget_.step();
            fresh_scope();
            assign(*s.target, item);
            if (truthy(evaluate(*s.expressions[1]))) chosen.push_back(target_value(*s.target, item));
        }
        items = std::get<std::shared_ptr<sequence const>>(
            make_sequence(budget_, sequence_kind::list, std::move(chosen)).data());
    }

    // The else block runs unless an iteration reached its end: after a break in the first, too, as in jinja2.
    bool completed = false;
    auto const loop = std::make_shared<loop_state>(loop_state{items});
    for (std::size_t i = 0; i < items->items.size(); ++i) {
        budget_.step();
        fresh_scope();
        loop->index = i;
        assign(*s.target, items->items[i]);
        scope_->put(budget_, "loop", loop);
        auto const how = execute(s.bodies[0]);
        if (how == flow::break_loop) break;
        completed |= how == flow::next;
    }
    scope_ = outer;
    return completed || s.bodies[1].empty() ? flow::next : execute_scoped(s.bodies[1]);
}

interpreter::flow interpreter::execute_scoped(block const& body)
{
    auto const outer = scope_;
    budget_.allocate(sizeof(scope));
    scope_ = std::make_shared<scope>(scope{outer, {}});
    struct restore {
        interpreter& in;
        std::shared_ptr<scope> const& outer;
        ~restore() { in.scope_ = outer; }
    } const guard{*this, outer};
    return execute(body);
}

value interpreter::captured(block const& body)
{
    text_builder text;
    auto* const outer = std::exchange(out_, &text);
    struct restore {
        interpreter& in;
        text_builder* outer;
        ~restore() { in.out_ = outer; }
    } const guard{*this, outer};
    execute_scoped(body);
    return text.finish(budget_);
}

value interpreter::macro_value(macro_definition const& m)
{
    budget_.allocate(sizeof(function));
    captured_scopes_.push_back(scope_);
    return std::make_shared<function const>(function{m.name, {}, nullptr, &m, scope_});
}

void interpreter::define_macro(statement const& s)
{
    scope_->put(budget_, s.macro->name, macro_value(*s.macro));
}

void interpreter::execute_call(statement const& s)
{
    auto const& call_expression = *s.expressions[0];
    auto const caller = macro_value(*s.macro);
    auto const callee = evaluate(*call_expression.operands[0]);
    auto given = evaluate_arguments(call_expression.arguments);
    given.named.emplace_back("caller", caller);
    append_str(budget_, *out_, call(callee, given));
}

void interpreter::execute_with(statement const& s)
{
    std::vector<value> values;
    values.reserve(s.expressions.size());
    for (auto const& e : s.expressions)
        values.push_back(evaluate(*e));
    auto const outer = scope_;
    budget_.allocate(sizeof(scope));
    auto const inner = std::make_shared<scope>(scope{outer, {}});
    struct restore {
        interpreter& in;
        std::shared_ptr<scope> const& outer;
        ~restore() { in.scope_ = outer; }
    } const guard{*this, outer};
    scope_ = inner;
    for (std::size_t i = 0; i < values.size(); ++i)
        assign(*s.targets[i], std::move(values[i]));
    execute(s.bodies[0]);
}

void interpreter::assign(expression const& target, value v)
{
    switch (target.kind) {
    case kind::name:
        scope_->put(budget_, target.name, std::move(v));
        return;
    case kind::attribute: {
        auto const* holder = scope_->find(budget_, target.operands[0]->name);
        auto* const space = holder ? holder->as_name_space() : nullptr;
        if (!space) throw failure("only the attributes of a namespace can be set");
        budget_.allocate(sizeof(value));
        budget_.step(space->items.size() / 8);
        space->put(target.name, std::move(v));
        return;
    }
    default: {
        auto const parts = iterate(budget_, v);
        if (parts->items.size() != target.operands.size())
            throw failure("cannot unpack " + std::to_string(parts->items.size()) + " values into " +
                          std::to_string(target.operands.size()));
        for (std::size_t i = 0; i < target.operands.size(); ++i)
            assign(*target.operands[i], parts->items[i]);
    }
    }
}

value interpreter::target_value(expression const& target, value const& item)
{
    if (target.kind != kind::tuple) return item;
    auto const parts = iterate(budget_, item);
    std::vector<value> values;
    values.reserve(target.operands.size());
    for (std::size_t i = 0; i < target.operands.size(); ++i)
        values.push_back(target_value(*target.operands[i], parts->items[i]));
    return make_sequence(budget_, sequence_kind::tuple, std::move(values));
}

// Calls

value interpreter::call(value const& callee, arguments const& given)
{
    frame const guard(*this);
    if (callee.is_undefined()) fail_undefined(callee);
    if (!callee.is_function()) throw failure(std::string(type_name(callee)) + " cannot be called");
    auto const& f = callee.callee();
    derivation const how(budget_, !f.macro && (holds_foreign(f.self) || any_foreign(given)));
    return f.macro ? call_macro(f, given) : f.call(*this, f.self, given);
}

value interpreter::call_macro(function const& f, arguments const& given)
{
    auto const& m = *f.macro;
    auto const count = m.parameters.size();
    auto const complain = [&](std::string const& what) { throw failure("the macro '" + m.name + "' takes " + what); };
    budget_.allocate(sizeof(scope) + count * sizeof(value));
    auto const inner = std::make_shared<scope>(scope{f.closure, {}});
    std::vector<value const*> values(count);
    for (std::size_t i = 0; i < std::min(count, given.positional.size()); ++i)
        values[i] = &given.positional[i];
    if (given.positional.size() > count && !m.uses_varargs)
        complain("not more than " + std::to_string(count) + " arguments");

    mapping others;
    budget_.step(given.named.size() * count / 8);
    for (auto const& [name, item] : given.named) {
        auto const at =
            static_cast<std::size_t>(std::find(m.parameters.begin(), m.parameters.end(), name) - m.parameters.begin());
        if (at < count && !values[at])
            values[at] = &item;
        else if (at == count && name == "caller" && m.uses_caller)
            inner->put(budget_, "caller", item);
        else if (m.uses_kwargs && (at == count))
            others.put(budget_, foreign_text(budget_, name), item);
        else
            complain("no keyword argument '" + name + "'");
    }
    if (m.uses_caller && !inner->variables.size() &&
        std::find(m.parameters.begin(), m.parameters.end(), "caller") == m.parameters.end())
        inner->put(budget_, "caller", make_undefined(budget_, "No caller defined"));
    if (m.uses_kwargs) inner->put(budget_, "kwargs", make_mapping(budget_, std::move(others)));
    if (m.uses_varargs) {
        std::vector<value> rest;
        for (auto i = count; i < given.positional.size(); ++i)
            rest.push_back(given.positional[i]);
        inner->put(budget_, "varargs", make_sequence(budget_, sequence_kind::tuple, std::move(rest)));
    }

    auto const outer = scope_;
    text_builder text;
    auto* const outer_text = std::exchange(out_, &text);
    struct restore {
        interpreter& in;
        std::shared_ptr<scope> const& outer;
        text_builder* text;
        ~restore()
        {
            in.scope_ = outer;
            in.out_ = text;
        }
    } const guard{*this, outer, outer_text};
    scope_ = inner;
    auto const first_default = count - m.defaults.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (values[i])
            inner->put(budget_, m.parameters[i], *values[i]);
        else if (i >= first_default)
            inner->put(budget_, m.parameters[i],
                       evaluate(*m.defaults[i - first_default])); // sees the parameters before it
        else
            inner->put(budget_, m.parameters[i],
                       make_undefined(budget_, "parameter '" + m.parameters[i] + "' was not provided"));
    }
    execute(m.body);
    return text.finish(budget_);
}

value interpreter::apply_filter(std::string_view name, value const& subject, arguments const& given)
{
    auto const f = find_filter(name);
    if (!f) throw failure("no filter named '" + std::string(name) + "'");
    budget_.step();
    derivation const how(budget_, holds_foreign(subject) || any_foreign(given));
    return f(*this, subject, given);
}

bool interpreter::apply_test(std::string_view name, value const& subject, arguments const& given)
{
    auto const f = find_predicate(name);
    if (!f) throw failure("no test named '" + std::string(name) + "'");
    budget_.step();
    return f(*this, subject, given);
}

// Expressions

value interpreter::evaluate(expression const& e)
{
    frame const guard(*this);
    where_ = e.where;
    switch (e.kind) {
    case kind::constant:
        return e.constant;
    case kind::name:
        return evaluate_name(e);
    case kind::list:
    case kind::tuple:
        return evaluate_list(e);
    case kind::dict:
        return evaluate_dict(e);
    case kind::attribute:
        return attribute(budget_, evaluate(*e.operands[0]), e.name);
    case kind::subscript: {
        auto const subject = evaluate(*e.operands[0]);
        return subscript(budget_, subject, evaluate(*e.operands[1]));
    }
    case kind::slice:
        return evaluate_slice(e);
    case kind::call:
        return evaluate_call(e);
    case kind::filter:
        return evaluate_filter(e, nullptr);
    case kind::test:
        return evaluate_test(e);
    case kind::negate:
        return negated(evaluate(*e.operands[0]));
    case kind::plus:
        return positive(evaluate(*e.operands[0]));
    case kind::logical_not:
        return !truthy(evaluate(*e.operands[0]));
    case kind::logical_and:
    case kind::logical_or: {
        auto left = evaluate(*e.operands[0]);
        return truthy(left) == (e.kind == kind::logical_or) ? left : evaluate(*e.operands[1]);
    }
    case kind::arithmetic:
        return evaluate_arithmetic(e);
    case kind::concatenation:
        return evaluate_concatenation(e);
    case kind::comparison:
        return evaluate_comparison(e);
    case kind::conditional:
        return evaluate_conditional(e);
    }
    return {};
}

value interpreter::evaluate_name(expression const& e)
{
    if (auto const* found = scope_->find(budget_, e.name)) return *found;
    if (auto global = find_global(e.name)) {
        budget_.allocate(sizeof(function));
        return global;
    }
    return make_undefined(budget_, "'" + e.name + "' is undefined");
}

value interpreter::evaluate_list(expression const& e)
{
    std::vector<value> items;
    items.reserve(e.operands.size());
    for (auto const& o : e.operands)
        items.push_back(evaluate(*o));
    return make_sequence(budget_, e.kind == kind::list ? sequence_kind::list : sequence_kind::tuple, std::move(items));
}

value interpreter::evaluate_dict(expression const& e)
{
    mapping m;
    for (std::size_t i = 0; i < e.operands.size(); i += 2) {
        auto key = evaluate(*e.operands[i]);
        if (!hashable(budget_, key)) throw failure(std::string(type_name(key)) + " cannot be a key");
        m.put(budget_, std::move(key), evaluate(*e.operands[i + 1]));
    }
    return make_mapping(budget_, std::move(m));
}

value interpreter::evaluate_slice(expression const& e)
{
    auto const subject = evaluate(*e.operands[0]);
    value parts[3];
    value const* given[3] = {};
    for (std::size_t i = 0; i < 3; ++i) {
        if (!e.operands[i + 1]) continue;
        parts[i] = evaluate(*e.operands[i + 1]);
        given[i] = &parts[i];
    }
    return slice(budget_, subject, given[0], given[1], given[2]);
}

arguments interpreter::evaluate_arguments(argument_expressions const& a)
{
    arguments given;
    given.positional.reserve(a.positional.size());
    for (auto const& e : a.positional)
        given.positional.push_back(evaluate(*e));
    if (a.unpacked) {
        auto const more = iterate(budget_, evaluate(*a.unpacked));
        budget_.allocate(more->items.size() * sizeof(value));
        given.positional.insert(given.positional.end(), more->items.begin(), more->items.end());
    }
    for (auto const& [name, e] : a.named)
        given.named.emplace_back(name, evaluate(*e));
    if (a.unpacked_named) {
        auto const more = evaluate(*a.unpacked_named);
        if (!more.is_mapping()) throw failure("'**' takes a mapping");
        for (auto const& [key, item] : more.members().items) {
            if (!key.is_string()) throw failure("the names of arguments are strings");
            budget_.allocate(key.string().bytes.size() + sizeof(value));
            budget_.step(given.named.size());
            auto const& name = key.string().bytes;
            for (auto const& n : given.named) {
                if (n.first == name) throw failure("the argument '" + name + "' is given twice");
            }
            given.named.emplace_back(name, item);
        }
    }
    return given;
}

value interpreter::evaluate_call(expression const& e)
{
    auto const callee = evaluate(*e.operands[0]);
    auto const given = evaluate_arguments(e.arguments);
    where_ = e.where;
    return call(callee, given);
}

value interpreter::evaluate_filter(expression const& e, value const* block_text)
{
    value subject;
    if (!e.operands[0])
        subject = *block_text;
    else if (block_text)
        subject = evaluate_filter(*e.operands[0], block_text);
    else
        subject = evaluate(*e.operands[0]);
    auto const given = evaluate_arguments(e.arguments);
    where_ = e.where;
    return apply_filter(e.name, subject, given);
}

value interpreter::evaluate_test(expression const& e)
{
    auto const subject = evaluate(*e.operands[0]);
    auto const given = evaluate_arguments(e.arguments);
    where_ = e.where;
    return apply_test(e.name, subject, given);
}

value interpreter::evaluate_arithmetic(expression const& e)
{
    auto const left = evaluate(*e.operands[0]);
    auto const right = evaluate(*e.operands[1]);
    where_ = e.where;
    derivation const how(budget_, holds_foreign(left) || holds_foreign(right));
    return arithmetic(budget_, e.operators[0], left, right);
}

value interpreter::evaluate_concatenation(expression const& e)
{
    text_builder text;
    for (auto const& o : e.operands)
        append_str(budget_, text, evaluate(*o));
    return text.finish(budget_);
}

value interpreter::evaluate_comparison(expression const& e)
{
    auto left = evaluate(*e.operands[0]);
    for (std::size_t i = 0; i < e.operators.size(); ++i) {
        auto right = evaluate(*e.operands[i + 1]);
        if (!compare(budget_, e.operators[i], left, right)) return false;
        left = std::move(right);
    }
    return true;
}

value interpreter::evaluate_conditional(expression const& e)
{
    if (truthy(evaluate(*e.operands[0]))) return evaluate(*e.operands[1]);
    if (e.operands[2]) return evaluate(*e.operands[2]);
    return make_undefined(budget_, "the inline if-expression evaluated to false and no else section was defined.");
}

} // namespace plait::jinja
