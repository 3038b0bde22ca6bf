#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/task.hpp>

/// Tasks that end as a test wants, and what they ended with.
namespace plait::test {

inline task<> wait_forever()
{
    event never;
    co_await never.wait();
}

inline task<> fail_with(char const* what)
{
    co_await this_task::yield();
    throw std::runtime_error(what);
}

/// The text of an exception; empty for none.
inline std::string what(std::exception_ptr const& e)
{
    try {
        if (e) std::rethrow_exception(e);
    } catch (std::exception const& x) {
        return x.what();
    }
    return "";
}

} // namespace plait::test
