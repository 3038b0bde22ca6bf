#pragma once

// All of this floor but the bridge to Asio, which is plait/actors/asio.hpp.

#include <plait/actors/actor.hpp>
#include <plait/actors/dump/dump.hpp>
#include <plait/actors/error.hpp>
#include <plait/actors/gone.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/shutdown.hpp>
#include <plait/actors/simulation/crash.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/supervisor.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/sync/gate.hpp>
#include <plait/actors/sync/latch.hpp>
#include <plait/actors/sync/semaphore.hpp>
#include <plait/actors/tasks/generator.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/task.hpp>
#include <plait/actors/tasks/timeout.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/actors/tasks/when_any.hpp>
#include <plait/actors/time/clock.hpp>
