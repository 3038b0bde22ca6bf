#include <algorithm>
#include <plait/model/chat/jinja/function.hpp>

namespace plait::jinja {

bound_arguments::bound_arguments(std::string_view function, arguments const& given,
                                 std::initializer_list<std::string_view> names, std::size_t required)
    : function_(function)
    , values_(names.size())
{
    auto const complain = [&](std::string const& what) { throw failure(std::string(function) + "() " + what); };
    if (given.positional.size() > names.size())
        complain("takes at most " + std::to_string(names.size()) + " arguments");
    for (std::size_t i = 0; i < given.positional.size(); ++i)
        values_[i] = &given.positional[i];
    for (auto const& [name, item] : given.named) {
        auto const at = std::find(names.begin(), names.end(), name);
        if (at == names.end() || name.empty()) complain("has no parameter '" + name + "'");
        auto& slot = values_[static_cast<std::size_t>(at - names.begin())];
        if (slot) complain("got two values for '" + name + "'");
        slot = &item;
    }
    for (std::size_t i = 0; i < required; ++i) {
        if (!values_[i]) complain("misses an argument");
    }
}

bool bound_arguments::boolean(std::size_t index, bool otherwise) const
{
    return values_[index] ? truthy(*values_[index]) : otherwise;
}

std::int64_t bound_arguments::integer(std::size_t index, std::int64_t otherwise) const
{
    if (!values_[index]) return otherwise;
    if (values_[index]->is_undefined()) fail_undefined(*values_[index]);
    if (!values_[index]->is_integer())
        throw failure(std::string(function_) + "() takes an integer, not " + std::string(type_name(*values_[index])));
    return values_[index]->integer();
}

std::string_view bound_arguments::string(std::size_t index, std::string_view otherwise) const
{
    if (!values_[index]) return otherwise;
    if (values_[index]->is_undefined()) fail_undefined(*values_[index]);
    if (!values_[index]->is_string())
        throw failure(std::string(function_) + "() takes a string, not " + std::string(type_name(*values_[index])));
    return values_[index]->string().bytes;
}

} // namespace plait::jinja
