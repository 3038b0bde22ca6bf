#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <plait/model/chat/jinja/lexer.hpp>
#include <plait/model/chat/jinja/numbers.hpp>
#include <plait/model/chat/jinja/parser.hpp>

namespace plait::jinja {

namespace {

using kind = expression_kind;

class parser {
public:
    parser(std::vector<token> tokens, template_limits const& limits, place& where)
        : tokens_(std::move(tokens))
        , budget_(limits)
        , where_(where)
    {
        where_ = tokens_.front().where;
    }

    block run()
    {
        auto body = statements({});
        return body;
    }

private:
    using words = std::initializer_list<std::string_view>;

    std::vector<token> tokens_;
    budget budget_; // for the constants and the depth
    place& where_;
    std::size_t at_ = 0;
    unsigned nesting_ = 0;
    unsigned loops_ = 0;                // loops around this place, within the macro
    macro_definition* macro_ = nullptr; // whose body is being parsed

    /// One level of nesting for the length of a scope, so that a hostile template cannot exhaust the stack.
    class level {
    public:
        explicit level(parser& p)
            : parser_(p)
        {
            p.budget_.depth(++p.nesting_);
        }
        ~level() { --parser_.nesting_; }
        level(level const&) = delete;
        level& operator=(level const&) = delete;

    private:
        parser& parser_;
    };

    // Tokens

    token const& current() const { return tokens_[at_]; }
    token const& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }

    token const& advance()
    {
        auto const& passed = tokens_[at_];
        if (at_ + 1 < tokens_.size()) ++at_;
        where_ = tokens_[at_].where;
        return passed;
    }

    bool at_operation(std::string_view text) const { return current().is(token_kind::operation, text); }
    bool at_name(std::string_view text) const { return current().is(token_kind::name, text); }

    bool skip_operation(std::string_view text)
    {
        if (!at_operation(text)) return false;
        advance();
        return true;
    }

    bool skip_name(std::string_view text)
    {
        if (!at_name(text)) return false;
        advance();
        return true;
    }

    static std::string described(token const& t)
    {
        switch (t.kind) {
        case token_kind::data:
            return "text";
        case token_kind::block_begin:
            return "'{%'";
        case token_kind::block_end:
            return "'%}'";
        case token_kind::variable_begin:
            return "'{{'";
        case token_kind::variable_end:
            return "'}}'";
        case token_kind::end:
            return "the end of the template";
        case token_kind::string:
            return "a string";
        default:
            return "'" + t.text + "'";
        }
    }

    [[noreturn]] void fail_expected(std::string const& what) const
    {
        throw failure("expected " + what + ", found " + described(current()));
    }

    void expect_operation(std::string_view text)
    {
        if (!skip_operation(text)) fail_expected("'" + std::string(text) + "'");
    }

    void expect_name(std::string_view text)
    {
        if (!skip_name(text)) fail_expected("'" + std::string(text) + "'");
    }

    std::string identifier()
    {
        if (!current().is(token_kind::name)) fail_expected("a name");
        return advance().text;
    }

    void expect_block_end()
    {
        if (!current().is(token_kind::block_end)) fail_expected("'%}'");
        advance();
    }

    // Expressions, from the loosest binding to the tightest

    expression_ptr make(kind k, place where) const
    {
        auto e = std::make_unique<expression>();
        e->kind = k;
        e->where = where;
        return e;
    }

    void adopt(expression& parent, expression_ptr child)
    {
        if (child) {
            parent.depth = std::max(parent.depth, child->depth + 1);
            budget_.depth(parent.depth);
        }
        parent.operands.push_back(std::move(child));
    }

    expression_ptr make(kind k, place where, expression_ptr a)
    {
        auto e = make(k, where);
        adopt(*e, std::move(a));
        return e;
    }

    expression_ptr make(kind k, place where, expression_ptr a, expression_ptr b)
    {
        auto e = make(k, where, std::move(a));
        adopt(*e, std::move(b));
        return e;
    }

    expression_ptr make_constant(place where, value v) const
    {
        auto e = make(kind::constant, where);
        e->constant = std::move(v);
        return e;
    }

    expression_ptr parse_expression(bool with_conditional = true)
    {
        level const guard(*this);
        if (!with_conditional) return parse_or();
        auto result = parse_or();
        while (at_name("if")) {
            auto const where = advance().where;
            auto condition = parse_or();
            auto e = make(kind::conditional, where, std::move(condition), std::move(result));
            adopt(*e, skip_name("else") ? parse_expression() : nullptr);
            result = std::move(e);
        }
        return result;
    }

    expression_ptr parse_or()
    {
        auto left = parse_and();
        while (at_name("or")) {
            auto const where = advance().where;
            left = make(kind::logical_or, where, std::move(left), parse_and());
        }
        return left;
    }

    expression_ptr parse_and()
    {
        auto left = parse_not();
        while (at_name("and")) {
            auto const where = advance().where;
            left = make(kind::logical_and, where, std::move(left), parse_not());
        }
        return left;
    }

    expression_ptr parse_not()
    {
        if (!at_name("not")) return parse_comparison();
        level const guard(*this);
        auto const where = advance().where;
        return make(kind::logical_not, where, parse_not());
    }

    bool comparison_operator(operator_kind& op)
    {
        static constexpr std::pair<std::string_view, operator_kind> operators[] = {
            {"==", operator_kind::equal},      {"!=", operator_kind::not_equal}, {"<", operator_kind::less},
            {"<=", operator_kind::less_equal}, {">", operator_kind::greater},    {">=", operator_kind::greater_equal},
        };
        for (auto const& [text, o] : operators) {
            if (!skip_operation(text)) continue;
            op = o;
            return true;
        }
        op = operator_kind::in;
        if (skip_name("in")) return true;
        if (!at_name("not") || !next().is(token_kind::name, "in")) return false;
        advance();
        advance();
        op = operator_kind::not_in;
        return true;
    }

    expression_ptr parse_comparison()
    {
        auto const where = current().where;
        auto first = parse_sum();
        operator_kind op;
        if (!comparison_operator(op)) return first;
        auto e = make(kind::comparison, where, std::move(first));
        do {
            e->operators.push_back(op);
            adopt(*e, parse_sum());
        } while (comparison_operator(op));
        return e;
    }

    expression_ptr arithmetic(operator_kind op, place where, expression_ptr left, expression_ptr right)
    {
        auto e = make(kind::arithmetic, where, std::move(left), std::move(right));
        e->operators.push_back(op);
        return e;
    }

    expression_ptr parse_sum()
    {
        auto left = parse_concatenation();
        while (at_operation("+") || at_operation("-")) {
            auto const op = at_operation("+") ? operator_kind::add : operator_kind::subtract;
            auto const where = advance().where;
            left = arithmetic(op, where, std::move(left), parse_concatenation());
        }
        return left;
    }

    expression_ptr parse_concatenation()
    {
        auto const where = current().where;
        auto first = parse_product();
        if (!at_operation("~")) return first;
        auto e = make(kind::concatenation, where, std::move(first));
        while (skip_operation("~"))
            adopt(*e, parse_product());
        return e;
    }

    expression_ptr parse_product()
    {
        static constexpr std::pair<std::string_view, operator_kind> operators[] = {
            {"*", operator_kind::multiply},
            {"/", operator_kind::divide},
            {"//", operator_kind::floor_divide},
            {"%", operator_kind::modulo},
        };
        auto left = parse_power();
        for (;;) {
            auto const* const found = std::find_if(std::begin(operators), std::end(operators),
                                                   [&](auto const& o) { return at_operation(o.first); });
            if (found == std::end(operators)) return left;
            auto const where = advance().where;
            left = arithmetic(found->second, where, std::move(left), parse_power());
        }
    }

    expression_ptr parse_power()
    {
        auto left = parse_unary(true);
        while (at_operation("**")) { // binds to the left, unlike Python's
            auto const where = advance().where;
            left = arithmetic(operator_kind::power, where, std::move(left), parse_unary(true));
        }
        return left;
    }

    expression_ptr parse_unary(bool with_filters)
    {
        auto const where = current().where;
        expression_ptr e;
        if (at_operation("-") || at_operation("+")) {
            level const guard(*this);
            auto const k = at_operation("-") ? kind::negate : kind::plus;
            advance();
            e = make(k, where, parse_unary(false));
        } else {
            e = parse_primary();
        }
        e = parse_postfix(std::move(e));
        return with_filters ? parse_filters_and_tests(std::move(e)) : std::move(e);
    }

    value number_value(token const& t)
    {
        if (t.is(token_kind::real)) return parse_real(t.text).value();
        int base = 10;
        auto const* const end = t.text.data() + t.text.size();
        auto const* begin = t.text.data();
        if (t.text.size() > 2 && t.text[0] == '0') {
            switch (t.text[1] | 0x20) {
            case 'b':
                base = 2;
                break;
            case 'o':
                base = 8;
                break;
            case 'x':
                base = 16;
                break;
            default:
                break;
            }
            if (base != 10) begin += 2;
        }
        std::int64_t i = 0;
        auto const [rest, problem] = std::from_chars(begin, end, i, base);
        if (problem != std::errc() || rest != end) throw failure("the number " + t.text + " is out of range");
        return i;
    }

    expression_ptr parse_primary()
    {
        auto const where = current().where;
        switch (current().kind) {
        case token_kind::name:
            return parse_name();
        case token_kind::string: {
            std::string text;
            while (current().is(token_kind::string))
                text += advance().text; // neighbours are one string
            return make_constant(where, make_text(budget_, std::move(text)));
        }
        case token_kind::integer:
        case token_kind::real:
            return make_constant(where, number_value(advance()));
        case token_kind::operation:
            break;
        default:
            throw failure("expected an expression, found " + described(current()));
        }
        if (skip_operation("(")) {
            auto e = parse_tuple(true, true);
            expect_operation(")");
            return e;
        }
        if (skip_operation("[")) {
            auto e = make(kind::list, where);
            parse_elements("]", [&] { adopt(*e, parse_expression()); });
            return e;
        }
        if (skip_operation("{")) {
            auto e = make(kind::dict, where);
            parse_elements("}", [&] {
                adopt(*e, parse_expression());
                expect_operation(":");
                adopt(*e, parse_expression());
            });
            return e;
        }
        throw failure("expected an expression, found " + described(current()));
    }

    template<class Element>
    void parse_elements(std::string_view closing, Element element)
    {
        bool first = true;
        while (!at_operation(closing)) {
            if (!first) expect_operation(",");
            first = false;
            if (at_operation(closing)) break;
            element();
        }
        expect_operation(closing);
    }

    expression_ptr parse_name()
    {
        auto const where = current().where;
        auto name = advance().text;
        if (name == "true" || name == "True") return make_constant(where, true);
        if (name == "false" || name == "False") return make_constant(where, false);
        if (name == "none" || name == "None") return make_constant(where, none{});
        if (macro_) {
            macro_->uses_caller |= name == "caller";
            macro_->uses_varargs |= name == "varargs";
            macro_->uses_kwargs |= name == "kwargs";
        }
        auto e = make(kind::name, where);
        e->name = std::move(name);
        return e;
    }

    bool at_tuple_end(std::string_view extra) const
    {
        return current().is(token_kind::variable_end) || current().is(token_kind::block_end) || at_operation(")") ||
               (!extra.empty() && at_name(extra));
    }

    /// An expression, or a tuple without parentheses. `extra` is a word that ends it too.
    expression_ptr parse_tuple(bool with_conditional, bool explicit_parentheses, std::string_view extra = {})
    {
        auto const where = current().where;
        return parse_tuple_of([&] { return parse_expression(with_conditional); }, where, explicit_parentheses, extra);
    }

    template<class Item>
    expression_ptr parse_tuple_of(Item item, place where, bool explicit_parentheses, std::string_view extra)
    {
        auto tuple = make(kind::tuple, where);
        bool is_tuple = false;
        for (;;) {
            if (!tuple->operands.empty()) expect_operation(",");
            if (at_tuple_end(extra)) break;
            adopt(*tuple, item());
            if (!at_operation(",")) break;
            is_tuple = true;
        }
        if (is_tuple) return tuple;
        if (!tuple->operands.empty()) return std::move(tuple->operands.front());
        if (!explicit_parentheses) throw failure("expected an expression, found " + described(current()));
        return tuple;
    }

    expression_ptr parse_postfix(expression_ptr e)
    {
        for (;;) {
            auto const where = current().where;
            if (skip_operation(".")) {
                e = parse_attribute(std::move(e), where);
            } else if (skip_operation("[")) {
                e = parse_subscript(std::move(e), where);
            } else if (at_operation("(")) {
                e = parse_call(std::move(e));
            } else {
                return e;
            }
        }
    }

    expression_ptr parse_attribute(expression_ptr subject, place where)
    {
        if (current().is(token_kind::integer)) {
            auto index = make_constant(where, number_value(advance()));
            return make(kind::subscript, where, std::move(subject), std::move(index));
        }
        auto e = make(kind::attribute, where, std::move(subject));
        e->name = identifier();
        return e;
    }

    expression_ptr parse_subscript(expression_ptr subject, place where)
    {
        expression_ptr start;
        if (skip_operation("]")) return make(kind::subscript, where, std::move(subject), make(kind::tuple, where));
        if (!at_operation(":")) {
            start = parse_expression();
            if (at_operation(",")) { // a tuple as the key
                auto key = make(kind::tuple, where, std::move(start));
                while (skip_operation(",")) {
                    if (at_operation("]")) break;
                    adopt(*key, parse_expression());
                }
                expect_operation("]");
                return make(kind::subscript, where, std::move(subject), std::move(key));
            }
            if (skip_operation("]")) return make(kind::subscript, where, std::move(subject), std::move(start));
        }
        expect_operation(":");
        auto e = make(kind::slice, where, std::move(subject), std::move(start));
        adopt(*e, at_operation(":") || at_operation("]") ? nullptr : parse_expression());
        adopt(*e, skip_operation(":") && !at_operation("]") ? parse_expression() : nullptr);
        expect_operation("]");
        return e;
    }

    expression_ptr parse_call(expression_ptr callee)
    {
        auto e = make(kind::call, current().where, std::move(callee));
        parse_arguments(*e);
        return e;
    }

    void parse_arguments(expression& call)
    {
        auto& a = call.arguments;
        auto const take = [&] {
            auto e = parse_expression();
            call.depth = std::max(call.depth, e->depth + 1);
            budget_.depth(call.depth);
            return e;
        };
        auto const ensure = [](bool ordered) {
            if (!ordered) throw failure("the arguments of a call are in a wrong order");
        };
        expect_operation("(");
        parse_elements(")", [&] {
            if (skip_operation("*")) {
                ensure(!a.unpacked && !a.unpacked_named);
                a.unpacked = take();
            } else if (skip_operation("**")) {
                ensure(!a.unpacked_named);
                a.unpacked_named = take();
            } else if (current().is(token_kind::name) && next().is(token_kind::operation, "=")) {
                ensure(!a.unpacked_named);
                auto name = identifier();
                advance();
                auto const repeated =
                    std::any_of(a.named.begin(), a.named.end(), [&](auto const& n) { return n.first == name; });
                if (repeated) throw failure("the argument '" + name + "' is given twice");
                a.named.emplace_back(std::move(name), take());
            } else {
                ensure(!a.unpacked && !a.unpacked_named && a.named.empty());
                a.positional.push_back(take());
            }
        });
    }

    expression_ptr parse_filters_and_tests(expression_ptr e)
    {
        for (;;) {
            if (at_operation("|")) {
                advance();
                e = parse_filter(std::move(e));
            } else if (at_name("is")) {
                e = parse_test(std::move(e));
            } else if (at_operation("(")) {
                e = parse_call(std::move(e));
            } else {
                return e;
            }
        }
    }

    std::string dotted_name()
    {
        auto name = identifier();
        while (skip_operation("."))
            name += "." + identifier();
        return name;
    }

    /// One filter behind its bar; `subject` is null for one that applies to a block.
    expression_ptr parse_filter(expression_ptr subject)
    {
        auto e = make(kind::filter, current().where, std::move(subject));
        e->name = dotted_name();
        if (at_operation("(")) parse_arguments(*e);
        return e;
    }

    /// The filters of `{% filter a | b %}` or `{% set x | a %}`.
    expression_ptr parse_block_filters()
    {
        auto e = parse_filter(nullptr);
        while (skip_operation("|"))
            e = parse_filter(std::move(e));
        return e;
    }

    expression_ptr parse_test(expression_ptr subject)
    {
        auto const where = advance().where;
        bool const negated = skip_name("not");
        auto e = make(kind::test, where, std::move(subject));
        e->name = dotted_name();
        if (at_operation("(")) {
            parse_arguments(*e);
        } else if (at_test_argument()) {
            if (at_name("is")) throw failure("tests cannot be chained with 'is'");
            auto argument = parse_postfix(parse_primary());
            e->depth = std::max(e->depth, argument->depth + 1);
            budget_.depth(e->depth);
            e->arguments.positional.push_back(std::move(argument));
        }
        return negated ? make(kind::logical_not, where, std::move(e)) : std::move(e);
    }

    bool at_test_argument() const
    {
        switch (current().kind) {
        case token_kind::name:
            return !at_name("else") && !at_name("or") && !at_name("and");
        case token_kind::string:
        case token_kind::integer:
        case token_kind::real:
            return true;
        case token_kind::operation:
            return at_operation("[") || at_operation("{"); // "(" was a call
        default:
            return false;
        }
    }

    // Targets of assignments

    static bool assignable(expression const& e)
    {
        if (e.kind == kind::tuple)
            return std::all_of(e.operands.begin(), e.operands.end(), [](auto const& o) { return assignable(*o); });
        return e.kind == kind::name || (e.kind == kind::attribute && e.operands[0]->kind == kind::name);
    }

    expression_ptr parse_target(std::string_view extra, bool with_namespace)
    {
        auto const where = current().where;
        auto target = parse_tuple_of(
            [&] {
                auto e = parse_primary();
                if (with_namespace && e->kind == kind::name && skip_operation("."))
                    e = parse_attribute(std::move(e), where);
                return e;
            },
            where, false, extra);
        if (!assignable(*target)) throw failure("this cannot be assigned to");
        return target;
    }

    // Statements

    /// Everything up to a tag whose name is one of `ends`, which stays current. Empty `ends`: to the end.
    block statements(words ends)
    {
        level const guard(*this);
        block body;
        for (;;) {
            auto const where = current().where;
            switch (current().kind) {
            case token_kind::end:
                if (ends.size())
                    throw failure("expected '{% " + std::string(*(ends.end() - 1)) + " %}' before the end");
                return body;
            case token_kind::data: {
                statement s{statement_kind::text, where};
                s.text = advance().text;
                body.push_back(std::move(s));
                break;
            }
            case token_kind::variable_begin: {
                advance();
                statement s{statement_kind::output, where};
                s.expressions.push_back(parse_tuple(true, false));
                if (!current().is(token_kind::variable_end)) fail_expected("'}}'");
                advance();
                body.push_back(std::move(s));
                break;
            }
            case token_kind::block_begin:
                advance();
                if (current().is(token_kind::name) && std::find(ends.begin(), ends.end(), current().text) != ends.end())
                    return body;
                body.push_back(parse_statement());
                break;
            default:
                throw failure("unexpected " + described(current()));
            }
        }
    }

    /// The body of a tag from behind its head to one of `ends`, which stays current.
    block body_until(words ends)
    {
        skip_operation(":");
        expect_block_end();
        return statements(ends);
    }

    /// The same, with the end tag consumed.
    block body_through(std::string_view end)
    {
        auto body = body_until({end});
        advance();
        expect_block_end();
        return body;
    }

    statement parse_statement()
    {
        auto const where = current().where;
        auto const name = identifier();
        if (name == "if") return parse_if(where);
        if (name == "for") return parse_for(where);
        if (name == "set") return parse_set(where);
        if (name == "macro") return parse_macro(where);
        if (name == "call") return parse_call_block(where);
        if (name == "with") return parse_with(where);
        if (name == "filter") {
            statement s{statement_kind::filtered, where};
            s.expressions.push_back(parse_block_filters());
            s.bodies.push_back(body_through("endfilter"));
            return s;
        }
        if (name == "generation") { // marks what the model wrote, for training; the text is what its body is
            statement s{statement_kind::scoped, where};
            s.bodies.push_back(body_through("endgeneration"));
            return s;
        }
        if (name == "break" || name == "continue") {
            if (!loops_) throw failure("'" + name + "' outside of a loop");
            expect_block_end();
            return {name == "break" ? statement_kind::loop_break : statement_kind::loop_continue, where};
        }
        throw failure("unknown or unsupported tag '" + name + "'");
    }

    statement parse_if(place where)
    {
        statement s{statement_kind::conditional, where};
        for (;;) {
            s.expressions.push_back(parse_tuple(false, false));
            s.bodies.push_back(body_until({"elif", "else", "endif"}));
            auto const word = advance().text;
            if (word == "elif") continue;
            if (word == "else") {
                s.bodies.push_back(body_until({"endif"}));
                advance();
            }
            expect_block_end();
            return s;
        }
    }

    statement parse_for(place where)
    {
        statement s{statement_kind::loop, where};
        s.target = parse_target("in", false);
        expect_name("in");
        s.expressions.push_back(parse_tuple(false, false, "recursive"));
        s.expressions.push_back(skip_name("if") ? parse_expression() : nullptr);
        if (at_name("recursive")) throw failure("recursive loops are not supported");
        ++loops_;
        s.bodies.push_back(body_until({"endfor", "else"}));
        --loops_;
        bool const otherwise = advance().text == "else";
        s.bodies.push_back(otherwise ? body_until({"endfor"}) : block());
        if (otherwise) advance();
        expect_block_end();
        return s;
    }

    statement parse_set(place where)
    {
        statement s{statement_kind::assignment, where};
        s.target = parse_target({}, true);
        if (skip_operation("=")) {
            s.expressions.push_back(parse_tuple(true, false));
            expect_block_end();
            return s;
        }
        s.kind = statement_kind::block_assignment;
        s.expressions.push_back(skip_operation("|") ? parse_block_filters() : nullptr);
        s.bodies.push_back(body_through("endset"));
        return s;
    }

    void parse_signature(macro_definition& m)
    {
        expect_operation("(");
        while (!at_operation(")")) {
            if (!m.parameters.empty()) expect_operation(",");
            m.parameters.push_back(identifier());
            if (skip_operation("="))
                m.defaults.push_back(parse_expression());
            else if (!m.defaults.empty())
                throw failure("a parameter without a default follows one with a default");
        }
        expect_operation(")");
    }

    /// The body of a macro: `break` does not reach out of it, and it notes which special names it uses.
    void parse_macro_body(macro_definition& m, std::string_view end)
    {
        auto const loops = std::exchange(loops_, 0u);
        auto* const outer = std::exchange(macro_, &m);
        m.body = body_through(end);
        macro_ = outer;
        loops_ = loops;
    }

    statement parse_macro(place where)
    {
        statement s{statement_kind::macro, where};
        s.macro = std::make_unique<macro_definition>();
        s.macro->name = identifier();
        parse_signature(*s.macro);
        parse_macro_body(*s.macro, "endmacro");
        return s;
    }

    statement parse_call_block(place where)
    {
        statement s{statement_kind::call, where};
        s.macro = std::make_unique<macro_definition>();
        if (at_operation("(")) parse_signature(*s.macro);
        auto call = parse_expression();
        if (call->kind != kind::call) throw failure("'call' takes a call");
        s.expressions.push_back(std::move(call));
        parse_macro_body(*s.macro, "endcall");
        return s;
    }

    statement parse_with(place where)
    {
        statement s{statement_kind::with, where};
        while (!current().is(token_kind::block_end)) {
            if (!s.targets.empty()) expect_operation(",");
            s.targets.push_back(parse_target({}, false));
            expect_operation("=");
            s.expressions.push_back(parse_expression());
        }
        s.bodies.push_back(body_through("endwith"));
        return s;
    }
};

} // namespace

block parse(std::string_view source, template_limits const& limits, place& where)
{
    return parser(tokenize(source, where), limits, where).run();
}

} // namespace plait::jinja
