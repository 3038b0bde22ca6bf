// as: engine/example.hpp
#pragma once

namespace plait {

task<int> count(std::string const& text);            // finds: coroutine-parameter
task<> print(std::string_view text, int times);      // finds: coroutine-parameter
generator<int> numbers(std::span<int const> values); // finds: coroutine-parameter
task<> load(runtime& home, file const& from, int n); // finds: coroutine-parameter

class store {
public:
    task<std::optional<int>> find(key const& k) const; // finds: coroutine-parameter
    template<class T>
    task<> put(T&& value) // finds: coroutine-parameter
    {
        co_await write(value);
    }
};

} // namespace plait
