#pragma once

#include <memory>
#include <plait/model/chat/jinja/value.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plait::jinja {

class interpreter;
struct macro_definition;
struct scope;

/// The evaluated arguments of one call.
struct arguments {
    std::vector<value> positional;
    std::vector<std::pair<std::string, value>> named;
};

/// Something a template can call: a global, a method bound to its value, or a macro with the scope it was written in.
struct function {
    using builtin = value (*)(interpreter&, value const& self, arguments const&);

    std::string name;
    value self;
    builtin call = nullptr;
    macro_definition const* macro = nullptr;
    std::shared_ptr<scope> closure;
};

/// The arguments of a built-in by the names of its parameters, as Python binds them.
class bound_arguments {
public:
    /// Throws `failure` for too many, unknown, repeated or, among the first `required`, missing arguments.
    bound_arguments(std::string_view function, arguments const& given, std::initializer_list<std::string_view> names,
                    std::size_t required);

    /// The argument of parameter `index`, or null where it was left out.
    value const* operator[](std::size_t index) const { return values_[index]; }

    /// The same, checked and converted; `otherwise` where it was left out.
    bool boolean(std::size_t index, bool otherwise) const;
    std::int64_t integer(std::size_t index, std::int64_t otherwise) const;
    std::string_view string(std::size_t index, std::string_view otherwise) const;

    /// Whether the argument is there and not None.
    bool given(std::size_t index) const { return values_[index] && !values_[index]->is_none(); }

private:
    std::string_view function_;
    std::vector<value const*> values_;
};

} // namespace plait::jinja
