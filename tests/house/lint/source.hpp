#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace plait::house {

enum class token_kind { identifier, number, text, punctuator };

/// One token of C++ without comments and without preprocessor lines; `text` of a string or character literal is empty.
struct token {
    token_kind kind = token_kind::punctuator;
    std::string_view text;
    int line = 0;
};

/// A preprocessor line, continuation lines joined, without the `#`: "include <vector>".
struct directive {
    std::string text;
    int line = 0;
};

/// What a `{` opens.
enum class brace {
    initializer, ///< a braced list: part of an expression
    control,     ///< the block of a statement
    function,    ///< a function's body
    lambda,      ///< a lambda's body: part of an expression
    requirement, ///< the body of a requires-expression: part of an expression
    type,        ///< a class, union, enumeration or namespace
};

/// A source file as tokens with its brackets matched. Enough of C++ to find the statements and expressions of a
/// well-formed file that is laid out like this project's; it knows no types.
class source {
public:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    /// `path` is how diagnostics name the file, relative to the source tree and with forward slashes.
    source(std::string path, std::string content);
    source(source const&) = delete;
    source& operator=(source const&) = delete;

    std::string const& path() const { return path_; }
    std::string const& content() const { return content_; }
    int lines() const { return lines_; }
    std::vector<token> const& tokens() const { return tokens_; }
    std::vector<directive> const& directives() const { return directives_; }

    std::size_t size() const { return tokens_.size(); }
    std::string_view text(std::size_t index) const { return index < size() ? tokens_[index].text : std::string_view{}; }
    bool is(std::size_t index, std::string_view wanted) const
    {
        return index < size() && tokens_[index].text == wanted;
    }
    bool is_name(std::size_t index) const { return index < size() && tokens_[index].kind == token_kind::identifier; }
    int line(std::size_t index) const { return index < size() ? tokens_[index].line : lines_; }

    /// The other bracket of a pair, `none` for a token that is no bracket or has no partner.
    std::size_t partner(std::size_t index) const { return index < size() ? partner_[index] : none; }
    /// The innermost bracket that is open at the token, `none` at the top.
    std::size_t enclosing(std::size_t index) const { return index < size() ? enclosing_[index] : none; }
    /// What the `{` at `index` opens.
    brace brace_kind(std::size_t index) const { return braces_[index]; }
    /// The `[` that begins the lambda whose body is the `{` at `index`.
    std::size_t lambda_of(std::size_t index) const { return lambdas_[index]; }
    /// True where the `[` at `index` begins a lambda.
    bool is_lambda(std::size_t index) const;
    /// The `{` of the function or lambda around the token, `none` outside of functions.
    std::size_t function_around(std::size_t index) const;
    /// True where the `(` at `index` belongs to if, while, for, switch or catch.
    bool is_control_parenthesis(std::size_t index) const;

    /// A half-open range of tokens.
    struct range {
        std::size_t first;
        std::size_t last;
    };
    /// The full expression, or the statement, around the token.
    range statement(std::size_t index) const;
    /// The index after a template parameter or argument list whose `<` is at `index`.
    std::size_t after_angles(std::size_t index) const;

private:
    void scan();
    void match();
    void mark_lambda(std::size_t open);
    brace classify(std::size_t index) const;
    std::size_t statement_begin(std::size_t index) const;

    std::string path_;
    std::string content_;
    int lines_ = 0;
    std::vector<token> tokens_;
    std::vector<directive> directives_;
    std::vector<std::size_t> partner_;
    std::vector<std::size_t> enclosing_;
    std::vector<brace> braces_;
    std::vector<std::size_t> lambdas_;
};

/// Something that breaks a rule.
struct finding {
    std::string path;
    int line = 0;
    std::string rule;
    std::string message;
};

} // namespace plait::house
