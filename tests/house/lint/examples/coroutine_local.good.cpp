// as: engine/example.cpp
#include <plait/actors/tasks/task.hpp>

namespace plait {

task<> locals()
{
    std::array<float, 16> few = {};
    char name[32];
    std::vector<float> many(4096);
    static std::array<float, 4096> const table = make_table();
    auto x = many[1024];
    co_await use(few, name, many, table, x);
}

// Not a coroutine: these live on the stack.
void stack()
{
    alignas(64) float lanes[16] = {};
    std::array<float, 4096> values;
    use(lanes, values);
}

} // namespace plait
