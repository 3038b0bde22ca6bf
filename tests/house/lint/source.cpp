#include <plait/tests/house/lint/source.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace plait::house {

namespace {

bool is_identifier_start(char c)
{
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}

bool is_identifier_part(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

template<std::size_t N>
bool one_of(std::string_view text, std::array<std::string_view, N> const& words)
{
    return std::find(words.begin(), words.end(), text) != words.end();
}

// Longest first. `>>` is left out: it closes two template argument lists more often than it shifts.
constexpr std::array<std::string_view, 24> operators = {"<=>", "...", "<<=", "->*", "::", "->", "++", "--",
                                                        "<<",  "<=",  ">=",  "==",  "!=", "&&", "||", "+=",
                                                        "-=",  "*=",  "/=",  "%=",  "&=", "|=", "^=", ".*"};

} // namespace

source::source(std::string path, std::string content)
    : path_(std::move(path))
    , content_(std::move(content))
{
    scan();
    match();
}

void source::scan()
{
    std::string_view const all = content_;
    std::size_t at = 0;
    int line = 1;
    bool line_is_blank_so_far = true;
    auto add = [&](token_kind kind, std::string_view text) {
        tokens_.push_back({kind, text, line});
        line_is_blank_so_far = false;
    };
    // Skips to the end of a comment, counting lines; `at` is on its first character.
    auto skip_comment = [&] {
        if (all.substr(at).starts_with("//")) {
            while (at < all.size() && all[at] != '\n') {
                if (all[at] == '\\' && at + 1 < all.size() && all[at + 1] == '\n') {
                    ++line;
                    ++at;
                }
                ++at;
            }
            return;
        }
        auto end = std::min(all.find("*/", at + 2), all.size());
        line += static_cast<int>(std::count(all.begin() + at, all.begin() + end, '\n'));
        at = std::min(end + 2, all.size());
    };
    auto at_comment = [&] { return all.substr(at).starts_with("//") || all.substr(at).starts_with("/*"); };
    auto skip_quoted = [&](char quote) {
        for (++at; at < all.size() && all[at] != quote && all[at] != '\n'; ++at) {
            if (all[at] == '\\' && at + 1 < all.size()) {
                ++at;
                line += all[at] == '\n';
            }
        }
        at = std::min(at + 1, all.size());
    };

    while (at < all.size()) {
        char const c = all[at];
        if (c == '\n') {
            ++line;
            ++at;
            line_is_blank_so_far = true;
        } else if (std::isspace(static_cast<unsigned char>(c)) || c == '\\') {
            ++at;
        } else if (at_comment()) {
            skip_comment();
        } else if (c == '#' && line_is_blank_so_far) {
            directive found{.text = {}, .line = line};
            for (++at; at < all.size() && all[at] != '\n';) {
                if (at_comment()) {
                    skip_comment();
                } else if (all[at] == '\\' && at + 1 < all.size() && all[at + 1] == '\n') {
                    ++line;
                    at += 2;
                } else {
                    found.text += all[at++];
                }
            }
            found.text.erase(0, found.text.find_first_not_of(" \t"));
            directives_.push_back(std::move(found));
        } else if (is_identifier_start(c)) {
            auto first = at;
            while (at < all.size() && is_identifier_part(all[at])) {
                ++at;
            }
            auto word = all.substr(first, at - first);
            bool const prefix = one_of<10>(word, {"R", "u8R", "uR", "UR", "LR", "u8", "u", "U", "L", ""});
            if (prefix && at < all.size() && all[at] == '"' && word.ends_with('R')) {
                auto open = std::min(all.find('(', at), all.size());
                auto end = std::string(")").append(all.substr(at + 1, open - at - 1)).append("\"");
                auto close = std::min(all.find(end, open), all.size());
                add(token_kind::text, {});
                line += static_cast<int>(std::count(all.begin() + at, all.begin() + close, '\n'));
                at = std::min(close + end.size(), all.size());
            } else if (prefix && at < all.size() && (all[at] == '"' || all[at] == '\'')) {
                add(token_kind::text, {});
                skip_quoted(all[at]);
            } else {
                add(token_kind::identifier, word);
            }
        } else if (std::isdigit(static_cast<unsigned char>(c)) ||
                   (c == '.' && at + 1 < all.size() && std::isdigit(static_cast<unsigned char>(all[at + 1])))) {
            auto first = at;
            while (at < all.size() && (is_identifier_part(all[at]) || all[at] == '.' || all[at] == '\'' ||
                                       ((all[at] == '+' || all[at] == '-') &&
                                        std::string_view("eEpP").find(all[at - 1]) != std::string_view::npos &&
                                        !all.substr(first).starts_with("0x")))) {
                ++at;
            }
            add(token_kind::number, all.substr(first, at - first));
        } else if (c == '"' || c == '\'') {
            add(token_kind::text, {});
            skip_quoted(c);
        } else {
            std::size_t length = 1;
            for (auto candidate : operators) {
                if (all.substr(at).starts_with(candidate)) {
                    length = candidate.size();
                    break;
                }
            }
            add(token_kind::punctuator, all.substr(at, length));
            at += length;
        }
    }
    lines_ = static_cast<int>(std::count(all.begin(), all.end(), '\n')) + (!all.empty() && all.back() != '\n');
}

void source::match()
{
    partner_.assign(size(), none);
    enclosing_.assign(size(), none);
    braces_.assign(size(), brace::initializer);
    lambdas_.assign(size(), none);
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < size(); ++i) {
        auto const& word = tokens_[i].text;
        if (word == ")" || word == "]" || word == "}") {
            if (!open.empty()) {
                partner_[i] = open.back();
                partner_[open.back()] = i;
                open.pop_back();
            }
            enclosing_[i] = open.empty() ? none : open.back();
        } else {
            enclosing_[i] = open.empty() ? none : open.back();
            if (word == "(" || word == "[" || word == "{") {
                open.push_back(i);
            }
        }
    }
    // Inner brackets are matched by now; braces are told apart from left to right, as each looks at those before it.
    for (std::size_t i = 0; i < size(); ++i) {
        if (is(i, "[")) {
            mark_lambda(i);
        } else if (is(i, "{")) {
            braces_[i] = lambdas_[i] != none ? brace::lambda : classify(i);
        }
    }
}

void source::mark_lambda(std::size_t open)
{
    if (is(open + 1, "[") || is(open - 1, "[") || partner_[open] == none) {
        return; // an attribute
    }
    if (open > 0) {
        auto const& before = tokens_[open - 1];
        constexpr std::array<std::string_view, 7> expression_follows = {"return", "co_return", "co_await", "co_yield",
                                                                        "throw",  "case",      "else"};
        bool const is_subscript = before.kind == token_kind::number || before.kind == token_kind::text ||
                                  (before.kind == token_kind::identifier && !one_of(before.text, expression_follows)) ||
                                  one_of<4>(before.text, {")", "]", "}", ">"});
        // `}` ends a statement more often than something that is subscripted.
        if (is_subscript &&
            !(before.text == "}" && partner_[open - 1] != none && braces_[partner_[open - 1]] != brace::initializer)) {
            return;
        }
        auto back = open - 1;
        while (back > 0 && one_of<3>(tokens_[back].text, {"&", "&&", "const"})) {
            --back;
        }
        if (tokens_[back].text == "auto") {
            return; // a structured binding
        }
    }
    auto i = partner_[open] + 1;
    if (is(i, "<")) {
        i = after_angles(i);
    }
    int angles = 0;
    for (; i < size(); ++i) {
        auto word = text(i);
        if (word == "{" && angles <= 0) {
            lambdas_[i] = open;
            return;
        }
        if (word == "(" || word == "[") {
            if (partner_[i] == none) {
                return;
            }
            i = partner_[i];
        } else if (word == "<") {
            ++angles;
        } else if (word == ">") {
            --angles;
        } else if (one_of<4>(word, {";", ")", "]", "}"}) || (word == "," && angles <= 0)) {
            return;
        }
    }
}

bool source::is_lambda(std::size_t index) const
{
    return std::find(lambdas_.begin(), lambdas_.end(), index) != lambdas_.end();
}

std::size_t source::after_angles(std::size_t index) const
{
    int depth = 0;
    for (auto i = index; i < size(); ++i) {
        auto word = text(i);
        if ((word == "(" || word == "[" || word == "{") && partner_[i] != none) {
            i = partner_[i];
        } else if (word == "<") {
            ++depth;
        } else if (word == ">" && --depth == 0) {
            return i + 1;
        } else if (word == ";") {
            return i;
        }
    }
    return size();
}

bool source::is_control_parenthesis(std::size_t index) const
{
    if (!is(index, "(") || index == 0) {
        return false;
    }
    auto before = index - 1;
    if (is(before, "constexpr") && before > 0) {
        --before;
    }
    return one_of<5>(text(before), {"if", "while", "for", "switch", "catch"});
}

// The first token of the statement that the token at `index` stands in.
std::size_t source::statement_begin(std::size_t index) const
{
    auto i = index;
    while (i > 0) {
        auto before = i - 1;
        auto word = text(before);
        if (word == ";") {
            break;
        }
        if (word == ")" || word == "]" || word == "}") {
            auto open = partner_[before];
            if (open == none) {
                break;
            }
            if (word == ")" && is_control_parenthesis(open)) {
                break;
            }
            if (word == "}" && braces_[open] != brace::initializer && braces_[open] != brace::lambda &&
                braces_[open] != brace::requirement) {
                break;
            }
            i = open;
            continue;
        }
        if (word == "{" && braces_[before] != brace::initializer) {
            break;
        }
        if (word == "(" && is_control_parenthesis(before)) {
            break;
        }
        if (word == "else" || word == "do") {
            break;
        }
        if (word == ":" && before > 0 && one_of<3>(text(before - 1), {"public", "private", "protected"})) {
            break;
        }
        i = before;
    }
    return i;
}

brace source::classify(std::size_t index) const
{
    if (index == 0) {
        return brace::control;
    }
    auto const before = index - 1;
    auto const word = text(before);
    if (word == "requires") {
        return brace::requirement;
    }
    if (word == ")" && partner_[before] != none && partner_[before] > 0 && is(partner_[before] - 1, "requires")) {
        return brace::requirement;
    }
    auto const around = enclosing_[index];
    if (around != none && (!is(around, "{") || braces_[around] == brace::initializer)) {
        return brace::initializer;
    }
    if (one_of<6>(word, {";", "{", ":", "else", "do", "try"})) {
        return brace::control;
    }
    if (word == "=" || word == "," || word == "return" || word == "co_return" || word == "co_yield") {
        return brace::initializer;
    }
    auto first = statement_begin(index);
    while (is(first, "template") && is(first + 1, "<")) {
        first = after_angles(first + 1);
    }
    while (one_of<5>(text(first), {"inline", "export", "static", "typedef", "constexpr"})) {
        ++first;
    }
    bool has_assignment = false;
    bool has_trailing_return = false;
    bool has_constraint = false;
    for (auto i = first; i < index; ++i) {
        if ((is(i, "(") || is(i, "[") || is(i, "{")) && partner_[i] != none) {
            i = partner_[i];
            auto next = i + 1;
            while (one_of<5>(text(next), {"const", "noexcept", "mutable", "&", "&&"})) {
                ++next;
            }
            if (is(next, "(") && is(next - 1, "noexcept") && partner_[next] != none) {
                next = partner_[next] + 1;
            }
            has_trailing_return = has_trailing_return || (is(i, ")") && is(next, "->") && next < index);
        } else if (is(i, "=")) {
            has_assignment = true;
        } else if (is(i, "requires")) {
            has_constraint = true;
        }
    }
    if (!has_assignment && one_of<6>(text(first), {"namespace", "class", "struct", "union", "enum", "extern"})) {
        return brace::type;
    }
    if (word == "}") {
        // After an initialiser only the body of a constructor follows.
        return partner_[before] != none && braces_[partner_[before]] == brace::initializer ? brace::function
                                                                                           : brace::control;
    }
    if (word == ")") {
        auto open = partner_[before];
        if (open != none && is_control_parenthesis(open)) {
            return brace::control;
        }
        return open != none && open > 0 && is(open - 1, "decltype") ? brace::initializer : brace::function;
    }
    if (one_of<6>(word, {"const", "noexcept", "override", "final", "&", "&&"})) {
        return brace::function;
    }
    return (has_trailing_return || has_constraint) && !has_assignment ? brace::function : brace::initializer;
}

std::size_t source::function_around(std::size_t index) const
{
    for (auto i = enclosing(index); i != none; i = enclosing(i)) {
        if (is(i, "{") && (braces_[i] == brace::function || braces_[i] == brace::lambda)) {
            return i;
        }
    }
    return none;
}

source::range source::statement(std::size_t index) const
{
    auto first = statement_begin(index);
    auto i = index;
    for (; i < size(); ++i) {
        auto word = text(i);
        if (word == ";") {
            break;
        }
        if (word == "(" || word == "[") {
            if (partner_[i] == none) {
                break;
            }
            i = partner_[i];
        } else if (word == "{") {
            if (partner_[i] == none || braces_[i] == brace::control || braces_[i] == brace::function ||
                braces_[i] == brace::type) {
                break;
            }
            i = partner_[i];
        } else if (word == ")" && partner_[i] != none && is_control_parenthesis(partner_[i])) {
            break;
        } else if (word == "}" && partner_[i] != none && braces_[partner_[i]] != brace::initializer) {
            break;
        }
    }
    return {first, i};
}

} // namespace plait::house
