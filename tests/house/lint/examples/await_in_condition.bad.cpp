// as: engine/example.cpp
#include <plait/actors/tasks/task.hpp>

namespace plait {

task<int> conditions(queue q)
{
    if (co_await q.ready()) { // finds: await-in-condition
        co_return 1;
    }
    while (auto item = co_await q.next()) { // finds: await-in-condition
        use(*item);
    }
    while (!(co_await q.next()).empty()) { // finds: await-in-condition
    }
    for (int i = 0; i < co_await q.size(); ++i) { // finds: await-in-condition
    }
    do {
        use(q);
    } while (co_await q.ready()); // finds: await-in-condition
    switch (co_await q.kind()) { // finds: await-in-condition
    default:
        break;
    }
    if (auto first = q.first(); co_await first->ready()) { // finds: await-in-condition
        co_return 2;
    }
    if constexpr (true) {
        if (
            // an await on a line of its own
            q.empty() &&
            co_await q.ready()) { // finds: await-in-condition
            co_return 3;
        }
    }
    auto inner = [](queue p) -> task<int> {
        if (co_await p.ready()) // finds: await-in-condition
            co_return 4;
        co_return 5;
    };
    co_return 0;
}

} // namespace plait
