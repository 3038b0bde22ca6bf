#pragma once

#include <cstdint>
#include <memory>
#include <plait/model/chat/jinja/place.hpp>
#include <plait/model/chat/jinja/value.hpp>
#include <string>
#include <utility>
#include <vector>

/// The tree a template is parsed into; immutable afterwards and shared by all renderings.
namespace plait::jinja {

struct expression;
using expression_ptr = std::unique_ptr<expression>;

enum class expression_kind : std::uint8_t {
    constant,      // value
    name,          // name
    list,          // operands
    tuple,         // operands
    dict,          // operands: key, value, key, value, ...
    attribute,     // operands[0].name
    subscript,     // operands[0][operands[1]]
    slice,         // operands: subject, start, stop, step; the last three may be null
    call,          // operands[0](arguments)
    filter,        // operands[0] | name(arguments); operands[0] is null for a filter applied to a block
    test,          // operands[0] is name(arguments)
    negate,        // - operands[0]
    plus,          // + operands[0]
    logical_not,   // operands[0]
    logical_and,   // operands[0], operands[1]
    logical_or,    // operands[0], operands[1]
    arithmetic,    // operands[0] operators[0] operands[1]
    concatenation, // operands joined as text
    comparison,    // operands[0] operators[0] operands[1] operators[1] ...
    conditional,   // operands: condition, then, else (may be null)
};

enum class operator_kind : std::uint8_t {
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,
    power,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    in,
    not_in,
};

struct argument_expressions {
    std::vector<expression_ptr> positional;
    std::vector<std::pair<std::string, expression_ptr>> named;
    expression_ptr unpacked;       ///< *expression
    expression_ptr unpacked_named; ///< **expression
};

struct expression {
    expression_kind kind;
    place where;
    unsigned depth = 1; ///< 1 + the deepest operand or argument
    value constant{};
    std::string name{};
    std::vector<expression_ptr> operands{};
    std::vector<operator_kind> operators{};
    argument_expressions arguments{};
};

struct statement;
using block = std::vector<statement>;

/// A macro, or the body of a call block seen as one.
struct macro_definition {
    std::string name{};
    std::vector<std::string> parameters{};
    std::vector<expression_ptr> defaults{}; ///< of the last parameters
    block body;
    bool uses_caller = false;
    bool uses_varargs = false;
    bool uses_kwargs = false;
};

enum class statement_kind : std::uint8_t {
    text,             // text
    output,           // expressions[0]
    conditional,      // expressions are conditions, bodies their blocks; one more body is the else
    loop,             // target in expressions[0] if expressions[1] (may be null); bodies: each, else
    assignment,       // target = expressions[0]
    block_assignment, // target = bodies[0] through the filter expressions[0] (may be null)
    macro,            // macro
    call,             // expressions[0] is the call, macro its caller
    filtered,         // bodies[0] through the filter expressions[0]
    with,             // targets[i] = expressions[i], then bodies[0]
    scoped,           // bodies[0] in a scope of its own
    loop_break,
    loop_continue,
};

struct statement {
    statement_kind kind;
    place where;
    std::string text{};
    expression_ptr target{};
    std::vector<expression_ptr> targets{};
    std::vector<expression_ptr> expressions{};
    std::vector<block> bodies{};
    std::unique_ptr<macro_definition> macro{};
};

} // namespace plait::jinja
