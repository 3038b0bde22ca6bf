// as: engine/example.cpp
#include <plait/actors/tasks/task.hpp>

namespace plait {

task<> locals()
{
    alignas(64) float lanes[16] = {}; // finds: coroutine-local
    std::array<float, 4096> values;   // finds: coroutine-local
    char buffer[65'536];              // finds: coroutine-local
    co_await use(lanes, values, buffer);
}

} // namespace plait
