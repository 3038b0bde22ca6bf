#pragma once

// All of this floor but the bridge to Asio, which is plait/actors/asio.hpp.

#include <plait/actors/actor.hpp>
#include <plait/actors/channel.hpp>
#include <plait/actors/clock.hpp>
#include <plait/actors/crash.hpp>
#include <plait/actors/dump.hpp>
#include <plait/actors/error.hpp>
#include <plait/actors/event.hpp>
#include <plait/actors/gate.hpp>
#include <plait/actors/generator.hpp>
#include <plait/actors/gone.hpp>
#include <plait/actors/latch.hpp>
#include <plait/actors/runtime.hpp>
#include <plait/actors/scope.hpp>
#include <plait/actors/semaphore.hpp>
#include <plait/actors/shutdown.hpp>
#include <plait/actors/simulation.hpp>
#include <plait/actors/supervisor.hpp>
#include <plait/actors/task.hpp>
#include <plait/actors/timeout.hpp>
#include <plait/actors/when_all.hpp>
#include <plait/actors/when_any.hpp>
