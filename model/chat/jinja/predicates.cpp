#include <algorithm>
#include <plait/model/chat/jinja/filters.hpp>
#include <plait/model/chat/jinja/interpreter.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/predicates.hpp>
#include <plait/model/chat/jinja/strings.hpp>

namespace plait::jinja {

namespace {

using entry = std::pair<std::string_view, predicate_function>;

template<bool (*holds)(value const&)>
bool simple(interpreter&, value const& subject, arguments const& given)
{
    bound_arguments const a("the test", given, {}, 0);
    return holds(subject);
}

bool is_true(value const& v)
{
    return v.is_boolean() && v.integer() == 1;
}
bool is_false(value const& v)
{
    return v.is_boolean() && v.integer() == 0;
}
bool is_defined(value const& v)
{
    return !v.is_undefined();
}
bool is_undefined(value const& v)
{
    return v.is_undefined();
}
bool is_none(value const& v)
{
    return v.is_none();
}
bool is_boolean(value const& v)
{
    return v.is_boolean();
}
bool is_integer(value const& v)
{
    return v.is_integer() && !v.is_boolean();
}
bool is_float(value const& v)
{
    return v.is_real();
}
bool is_number(value const& v)
{
    return v.is_number();
}
bool is_string(value const& v)
{
    return v.is_string();
}
bool is_mapping(value const& v)
{
    return v.is_mapping();
}
bool is_callable(value const& v)
{
    return v.is_function() || v.is_undefined() || v.as_loop();
}
bool is_never(value const&)
{
    return false;
}

bool is_sequence(value const& v)
{
    return v.is_undefined() || v.is_string() || v.is_mapping() || (v.is_sequence() && v.items().indexable());
}

bool is_iterable(value const& v)
{
    return v.is_undefined() || v.is_string() || v.is_mapping() || v.is_sequence() || v.as_loop();
}

bool remainder_is(interpreter& in, value const& subject, value const& divisor, std::int64_t wanted)
{
    auto const remainder = arithmetic(in.cost(), operator_kind::modulo, subject, divisor);
    return equal(in.cost(), remainder, value(wanted));
}

template<std::int64_t wanted>
bool parity(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("the test", given, {}, 0);
    return remainder_is(in, subject, value(std::int64_t{2}), wanted);
}

bool is_divisible(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("divisibleby", given, {"num"}, 1);
    return remainder_is(in, subject, *a[0], 0);
}

template<operator_kind op>
bool compares(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("the test", given, {""}, 1);
    return compare(in.cost(), op, subject, *a[0]);
}

bool is_same(interpreter&, value const& subject, arguments const& given)
{
    bound_arguments const a("sameas", given, {"other"}, 1);
    return same(subject, *a[0]);
}

template<bool (*holds)(std::string_view)>
bool of_case(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("the test", given, {}, 0);
    auto const text = to_str(in.cost(), subject);
    in.cost().classify(text.size());
    return holds(text);
}

/// Whether `find` knows a name; what could not be the key of a dictionary is refused, as by Python's `in`.
template<auto find>
bool is_known(interpreter& in, value const& subject, arguments const& given)
{
    bound_arguments const a("the test", given, {}, 0);
    if (!hashable(in.cost(), subject)) throw failure(std::string(type_name(subject)) + " is no name");
    return subject.is_string() && find(subject.string().bytes);
}

constexpr entry predicates[] = {
    {"!=", compares<operator_kind::not_equal>},
    {"<", compares<operator_kind::less>},
    {"<=", compares<operator_kind::less_equal>},
    {"==", compares<operator_kind::equal>},
    {">", compares<operator_kind::greater>},
    {">=", compares<operator_kind::greater_equal>},
    {"boolean", simple<is_boolean>},
    {"callable", simple<is_callable>},
    {"defined", simple<is_defined>},
    {"divisibleby", is_divisible},
    {"eq", compares<operator_kind::equal>},
    {"equalto", compares<operator_kind::equal>},
    {"escaped", simple<is_never>},
    {"even", parity<0>},
    {"false", simple<is_false>},
    {"filter", is_known<find_filter>},
    {"float", simple<is_float>},
    {"ge", compares<operator_kind::greater_equal>},
    {"greaterthan", compares<operator_kind::greater>},
    {"gt", compares<operator_kind::greater>},
    {"in", compares<operator_kind::in>},
    {"integer", simple<is_integer>},
    {"iterable", simple<is_iterable>},
    {"le", compares<operator_kind::less_equal>},
    {"lessthan", compares<operator_kind::less>},
    {"lower", of_case<is_lower_text>},
    {"lt", compares<operator_kind::less>},
    {"mapping", simple<is_mapping>},
    {"ne", compares<operator_kind::not_equal>},
    {"none", simple<is_none>},
    {"number", simple<is_number>},
    {"odd", parity<1>},
    {"sameas", is_same},
    {"sequence", simple<is_sequence>},
    {"string", simple<is_string>},
    {"test", is_known<find_predicate>},
    {"true", simple<is_true>},
    {"undefined", simple<is_undefined>},
    {"upper", of_case<is_upper_text>},
};

} // namespace

predicate_function find_predicate(std::string_view name)
{
    auto const* const found = std::lower_bound(std::begin(predicates), std::end(predicates), name,
                                               [](entry const& e, std::string_view v) { return e.first < v; });
    return found != std::end(predicates) && found->first == name ? found->second : nullptr;
}

} // namespace plait::jinja
