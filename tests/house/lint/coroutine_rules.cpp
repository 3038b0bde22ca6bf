#include <plait/tests/house/lint/coroutine_rules.hpp>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace plait::house {

namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> words)
{
    return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_await(source const& file, std::size_t index)
{
    return file.is(index, "co_await") || file.is(index, "co_yield");
}

class checker {
public:
    explicit checker(source const& file)
        : file_(file)
    {
    }

    std::vector<finding> run()
    {
        std::set<std::size_t> statements;
        for (std::size_t i = 0; i < file_.size(); ++i) {
            if (is_await(file_, i) && !file_.is(i - 1, "operator")) {
                check_condition(i);
                auto range = file_.statement(i);
                if (statements.insert(range.first).second) {
                    check_expression(range);
                }
            } else if (file_.is(i, "await_suspend") && file_.is(i + 1, "(")) {
                check_suspend(i);
            } else if ((file_.is(i, "task") || file_.is(i, "generator")) && file_.is(i + 1, "<")) {
                check_parameters(i);
            }
        }
        for (std::size_t i = 0; i < file_.size(); ++i) {
            check_local(i);
        }
        std::sort(found_.begin(), found_.end(),
                  [](auto const& a, auto const& b) { return std::tie(a.line, a.rule) < std::tie(b.line, b.rule); });
        return std::move(found_);
    }

private:
    void report(std::size_t index, char const* rule, std::string message)
    {
        finding added{.path = file_.path(), .line = file_.line(index), .rule = rule, .message = std::move(message)};
        bool const known = std::any_of(found_.begin(), found_.end(), [&](auto const& other) {
            return other.line == added.line && other.rule == added.rule;
        });
        if (!known) {
            found_.push_back(std::move(added));
        }
    }

    void check_condition(std::size_t await)
    {
        for (auto i = file_.enclosing(await); i != source::none; i = file_.enclosing(i)) {
            if (file_.is(i, "{") && file_.brace_kind(i) != brace::initializer) {
                return;
            }
            if (!file_.is_control_parenthesis(i)) {
                continue;
            }
            // The parts between the semicolons of this parenthesis; the condition of `for` is the middle one, of the
            // others the last. A range-for has one part and evaluates it once, outside of any condition.
            int part = 0;
            int parts = 1;
            for (auto k = i + 1; k < file_.partner(i) && k < file_.size(); ++k) {
                if (file_.is(k, ";") && file_.enclosing(k) == i) {
                    ++parts;
                    part += k < await;
                }
            }
            bool const is_for = file_.is(i - 1, "for");
            if (is_for ? parts == 3 && part == 1 : part == parts - 1) {
                report(await, "await-in-condition", "no await in a condition: hoist it into a variable");
            }
            return;
        }
    }

    // What stands in the full expression of an await, nested functions left out.
    void check_expression(source::range range)
    {
        for (auto i = range.first; i < range.last; ++i) {
            if (file_.is(i, "[") && file_.is_lambda(i)) {
                if (file_.partner(i) != i + 1) {
                    report(i, "lambda-beside-await", "a capturing lambda in the expression of an await: name it first");
                }
            } else if (file_.is(i, "{")) {
                if (file_.brace_kind(i) != brace::initializer) {
                    i = file_.partner(i); // a lambda's body is another function
                } else if (contains_await(i) || !is_scalar_initializer(i)) {
                    report(i, "braces-beside-await",
                           "a braced temporary or list in the expression of an await: name it first, or give the type "
                           "a constructor and call it with parentheses");
                }
            } else if (file_.is(i, "?") && !is_literal_choice(i)) {
                report(i, "choice-beside-await", "?: in the expression of an await: name the choice first");
            }
            if (i == source::none) {
                return;
            }
        }
    }

    bool contains_await(std::size_t open) const
    {
        for (auto i = open; i < file_.partner(open); ++i) {
            if (is_await(file_, i)) {
                return true;
            }
        }
        return false;
    }

    // `int{x}`, `std::size_t{0}`: no object whose destructor could run twice.
    bool is_scalar_initializer(std::size_t brace) const
    {
        auto const type = file_.text(brace - 1);
        return one_of(type, {"bool",    "char",     "short",     "int",      "unsigned",  "long",    "float",
                             "double",  "size_t",   "ptrdiff_t", "int8_t",   "int16_t",   "int32_t", "int64_t",
                             "uint8_t", "uint16_t", "uint32_t",  "uint64_t", "uintptr_t", "byte"});
    }

    // `flag ? 1 : 2`, with nothing but literals to choose from.
    bool is_literal_choice(std::size_t question) const
    {
        auto literal = [&](std::size_t index) {
            auto const& token = file_.tokens()[std::min(index, file_.size() - 1)];
            return token.kind == token_kind::number || token.kind == token_kind::text ||
                   one_of(token.text, {"true", "false", "nullptr"});
        };
        return literal(question + 1) && file_.is(question + 2, ":") && literal(question + 3) &&
               file_.tokens()[std::min(question + 4, file_.size() - 1)].kind == token_kind::punctuator;
    }

    // Once the handle is published another thread may have resumed and destroyed the coroutine, and the awaiter with
    // it.
    void check_suspend(std::size_t name)
    {
        auto const parameters = name + 1;
        if (file_.partner(parameters) == source::none) {
            return;
        }
        auto body = file_.partner(parameters) + 1;
        while (body < file_.size() && !file_.is(body, "{") && !file_.is(body, ";")) {
            ++body;
        }
        if (!file_.is(body, "{") || file_.brace_kind(body) != brace::function) {
            return;
        }
        auto const end = file_.partner(body);
        auto const handle = file_.text(file_.partner(parameters) - 1);
        for (auto i = body + 1; i < end; ++i) {
            if (file_.function_around(i) != body || !is_publication(i, handle)) {
                continue;
            }
            // What is reached after the statement that publishes: the rest of each block around it, up to a return.
            auto after = file_.statement(i).last;
            if (file_.is(file_.statement(i).first, "return")) {
                continue;
            }
            // A publication inside a condition is over when the condition is; its branches may still run.
            int depth = 0;
            for (auto k = after; k < end; ++k) {
                if (file_.is(k, "{")) {
                    ++depth;
                } else if (file_.is(k, "}")) {
                    --depth;
                } else if (touches_awaiter(k, handle)) {
                    report(k, "publish-last",
                           "await_suspend touches its awaiter after it has published the handle: the coroutine may be "
                           "gone");
                    break;
                } else if (file_.is(k, "return") && depth <= 0) {
                    // This return ends the path, unless what it returns touches the awaiter.
                    auto range = file_.statement(k);
                    for (auto r = k + 1; r < range.last; ++r) {
                        if (touches_awaiter(r, handle)) {
                            report(r, "publish-last",
                                   "await_suspend touches its awaiter after it has published the handle: the coroutine "
                                   "may be gone");
                            break;
                        }
                    }
                    break;
                }
            }
        }
    }

    // A call that hands the awaiter or its handle to somebody who may resume it at once.
    bool is_publication(std::size_t index, std::string_view handle) const
    {
        if (!one_of(file_.text(index),
                    {"post", "push", "push_back", "enqueue", "publish", "exchange", "schedule", "resume", "add_waiter",
                     "submit", "compare_exchange_weak", "compare_exchange_strong"}) ||
            !file_.is(index + 1, "(")) {
            return false;
        }
        auto const close = file_.partner(index + 1);
        for (auto i = index + 2; i < close; ++i) {
            if (file_.is(i, "this") || file_.is(i, handle)) {
                return true;
            }
        }
        return close == index + 2; // `resumption_.post()`
    }

    bool touches_awaiter(std::size_t index, std::string_view handle) const
    {
        auto const word = file_.text(index);
        return file_.is_name(index) && (word == "this" || word == handle || (word.size() > 1 && word.ends_with('_')));
    }

    // `task<T> name(parameters)` in a header: a coroutine's parameters live in its frame, but what a reference or a
    // view refers to may be gone when it resumes.
    void check_parameters(std::size_t type)
    {
        if (!file_.path().ends_with(".hpp") || file_.is(type - 1, "class") || file_.is(type - 1, "struct")) {
            return;
        }
        auto name = file_.after_angles(type + 1);
        while (file_.is_name(name) && file_.is(name + 1, "::")) {
            name += 2;
        }
        // A function's declaration, at namespace or class scope.
        if (!file_.is_name(name) || !file_.is(name + 1, "(") || file_.function_around(name) != source::none ||
            !(file_.enclosing(name) == source::none || file_.is(file_.enclosing(name), "{")) || is_private(name)) {
            return;
        }
        auto const open = name + 1;
        auto const close = file_.partner(open);
        if (close == source::none) {
            return;
        }
        auto body = close + 1;
        while (body < file_.size() && !file_.is(body, "{") && !file_.is(body, ";")) {
            ++body;
        }
        if (file_.is(body, "{") && !is_coroutine(body)) {
            return; // it only makes the task: its parameters end with the call
        }
        int angles = 0;
        bool is_const = false;
        for (auto i = open + 1; i < close; ++i) {
            if ((file_.is(i, "(") || file_.is(i, "{") || file_.is(i, "[")) && file_.partner(i) != source::none) {
                i = file_.partner(i);
            } else if (file_.is(i, "<")) {
                ++angles;
            } else if (file_.is(i, ">")) {
                --angles;
            } else if (angles > 0) {
                continue;
            } else if (file_.is(i, ",")) {
                is_const = false;
            } else if (file_.is(i, "const")) {
                is_const = true;
            } else if (one_of(file_.text(i), {"&&", "string_view", "span"}) || (file_.is(i, "&") && is_const)) {
                report(
                    i, "coroutine-parameter",
                    "a public coroutine takes values or handles: what binds to a temporary, or views one, may dangle "
                    "when it resumes");
                return;
            }
        }
    }

    bool is_coroutine(std::size_t body) const
    {
        for (auto i = body + 1; i < file_.partner(body); ++i) {
            if (one_of(file_.text(i), {"co_await", "co_yield", "co_return"}) && file_.function_around(i) == body) {
                return true;
            }
        }
        return false;
    }

    // In the private or protected part of a class, or in a namespace called detail.
    bool is_private(std::size_t index) const
    {
        for (auto around = file_.enclosing(index); around != source::none; around = file_.enclosing(around)) {
            auto first = around;
            while (first > 0 && !one_of(file_.text(first - 1), {";", "}", "{"})) {
                --first;
            }
            bool is_class = false;
            for (auto i = first; i < around; ++i) {
                if (file_.is(i, "namespace") && file_.is(around - 1, "detail")) {
                    return true;
                }
                is_class = is_class || file_.is(i, "class");
            }
            auto access = is_class ? std::string_view("private") : std::string_view("public");
            for (auto i = around + 1; i < index; ++i) {
                if (file_.is(i + 1, ":") && file_.enclosing(i) == around &&
                    one_of(file_.text(i), {"public", "private", "protected"})) {
                    access = file_.text(i);
                }
            }
            if (is_class && access != "public") {
                return true;
            }
            index = around;
        }
        return false;
    }

    // Frames are recycled in small size classes and are aligned as operator new aligns.
    void check_local(std::size_t index)
    {
        bool const aligned = file_.is(index, "alignas");
        bool const array = file_.is(index, "array") && file_.is(index + 1, "<") && file_.is(index - 1, "::");
        bool const plain_array = file_.is(index, "[") && file_.is_name(index - 1) && file_.is(index + 2, "]") &&
                                 (file_.is(index + 3, ";") || file_.is(index + 3, "=") || file_.is(index + 3, "{")) &&
                                 file_.is_name(index - 2);
        if (!aligned && !array && !plain_array) {
            return;
        }
        auto const function = file_.function_around(index);
        if (function == source::none || !is_coroutine(function) || file_.is(index - 1, "static") ||
            file_.is(file_.statement(index).first, "static")) {
            return;
        }
        if (aligned) {
            report(index, "coroutine-local", "an over-aligned local in a coroutine: its frame is not aligned for it");
            return;
        }
        auto const size = array ? file_.after_angles(index + 1) - 2 : index + 1;
        if (file_.tokens()[size].kind == token_kind::number && elements(file_.text(size)) > 256) {
            report(index, "coroutine-local", "a large local in a coroutine: hold it in a vector");
        }
    }

    static unsigned long long elements(std::string_view literal)
    {
        std::string digits;
        for (char c : literal) {
            if (c != '\'') {
                digits += c;
            }
        }
        return std::stoull(digits, nullptr, 0);
    }

    source const& file_;
    std::vector<finding> found_;
};

} // namespace

std::vector<finding> check_coroutines(source const& file)
{
    return checker(file).run();
}

} // namespace plait::house
