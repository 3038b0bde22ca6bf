"""Shows the actors, methods and chains of awaits of a program that uses plait, alive or as a core file.

    gdb -p PID -x plait_gdb.py -ex "plait dump" -batch

It reads memory only and runs nothing in the program, so it works when every thread hangs. It tells the same as
plait::dump(), apart from what waits beyond a name. plait's actors floor is built with -g for it.
"""

import re

import gdb

MOST_LINES = 48  # of one chain; of a longer one the middle is left out
MOST_FRAMES = 1000000  # of one chain: what a running thread changes may lead round in circles


class Object:
    """A C++ object of plait's at an address, by the type that plait gives it. gdb's own values would look for the
    class that it really is, and complain where that has no -g."""

    def __init__(self, address, type_name_or_type):
        self.address = int(address)
        found = type_name_or_type
        if isinstance(found, str):
            found = gdb.lookup_type("plait::" + found)
        self.type = found.strip_typedefs()

    def __getitem__(self, name):
        """A member: an Object, or a number, which a pointer is too."""
        member = find_field(self.type, name)
        if member is None:
            raise gdb.GdbError("%s has no member %s: another version of plait?" % (self.type, name))
        offset, kind = member
        kind = kind.strip_typedefs()
        if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
            inner = Object(self.address + offset, kind)
            if kind.name == "std::atomic<bool>":
                inner = inner["_M_base"]
            return inner["_M_i"] if kind.name.startswith("std::atomic<") else inner
        value = gdb.Value(self.address + offset).cast(kind.pointer()).dereference()
        return int(value)

    def at(self, name, type_name):
        """What a pointer member points to; None for null."""
        address = self[name]
        return Object(address, type_name) if address else None


def find_field(kind, name):
    """The offset and the type of a member, of a base or of an unnamed union too."""
    for field in kind.fields():
        if not hasattr(field, "bitpos"):
            continue
        offset = field.bitpos // 8
        if field.name == name:
            return offset, field.type
        if field.is_base_class or not field.name:
            inner = find_field(field.type.strip_typedefs(), name)
            if inner:
                return offset + inner[0], inner[1]
    return None


def text_at(address):
    return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string()


def view(o):
    """The text of a std::string_view."""
    return text_at(o["_M_str"])[: o["_M_len"]]


def symbol(address):
    """The name of the symbol at an address, demangled, without an offset."""
    text = gdb.execute("info symbol %#x" % address, to_string=True)
    return re.sub(r"( \+ \d+)?( in section .*)?\n$", "", text)


def method_of(message):
    """The method that a message calls: the first template argument in the name of its class."""
    vtable = int(gdb.Value(message.address).cast(gdb.lookup_type("unsigned long").pointer()).dereference())
    found = re.search(r"_(?:message|awaiter)<[(&]*(.*?)[(),>]", symbol(vtable).replace("(anonymous namespace)", "{}"))
    return found.group(1).replace("{}", "(anonymous namespace)") if found else "stopping"


def label(core):
    return "%s #%d" % (view(core["name_"]), core["id_"])


def place(file, line):
    return "%s:%d" % (text_at(file), line)


def waits_for(operation):
    kind = operation.at("kind_", "wait_kind")
    if not kind:
        return "runs"
    text = "waits for " + text_at(kind["name"])
    if symbol(kind.address).endswith("ask_message::an_answer"):
        message = Object(operation.address, "detail::ask_message::asker").at("self", "detail::ask_message")
        text += " of %s by %s" % (method_of(message), label(message.at("core_", "detail::actor_core")))
    return text


def chain(frame):
    """The lines of a chain of awaits, from its root down."""
    lines = []
    while len(lines) < MOST_FRAMES:
        if frame["line_"] == 0:  # nothing else of it is set before its first await
            lines.append("not awaiting yet")
            return lines
        lines.append(place(frame["file_"], frame["line_"]))
        beneath = frame["beneath_"]
        if beneath == 0 or beneath & 1:
            break
        frame = Object(beneath, "detail::frame")
    if beneath:
        lines[-1] += " " + waits_for(Object(beneath - 1, "resumption"))
    else:
        lines[-1] += " runs, or waits for something that is not plait's"
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines[half:-half] = ["(%d more)" % (len(lines) - MOST_LINES)]
    return lines


def show_chains(chains):
    root = chains.at("first_", "detail::frame")
    while root:
        try:
            for depth, line in enumerate(chain(root)):
                print("    " + " " * depth + line)
        except (gdb.error, gdb.MemoryError, UnicodeDecodeError):
            print("    not readable: it is running")
        root = root["listed_"].at("next", "detail::frame")


def state_of(core):
    for member, state in (
        ("gone_", "gone"),
        ("closed_", "stopping"),
        ("paused_", "paused by a failure"),
        ("holder_", "held exclusively"),
    ):
        if core[member]:
            return state
    # A method that was called in place has no message.
    return "running" if core["running_"]["first_"] or core["in_call_"] else "idle"


def show_actor(core):
    depth = core["sent_"]["sent_"] - core["taken_"]
    print("actor %s: %s, %d of %d messages waiting" % (label(core), state_of(core), depth, core["capacity_"]))
    message = core["running_"].at("first_", "detail::message")
    while message:
        sent_from = message["sent_from_"]
        text = "  " + method_of(message)
        if sent_from["line"]:
            text += ", called at " + place(sent_from["file"], sent_from["line"])
        print(text)
        show_chains(message["chains_"])
        message = message.at("next_", "detail::message")


def show_runtime(listed):
    core = listed.at("actors_", "detail::actor_registry")["living_"].at("oldest", "detail::actor_core")
    while core:
        show_actor(core)
        core = core.at("registry_next_", "detail::actor_core")
    task = listed.at("tasks_", "detail::run_registry").at("first_", "detail::run_entry")
    while task:
        if task["place"]:
            print("task #%d" % task["number"])
            show_chains(task["chains"])
        task = task.at("next", "detail::run_entry")


def show_all():
    try:
        first = gdb.parse_and_eval("&plait::detail::all_runtimes")
    except gdb.error as missing:
        raise gdb.GdbError("no runtime of plait here, or it was built without -g: %s" % missing)
    listed = Object(first, "detail::runtime_list").at("first", "detail::listed_runtime")
    if not listed:
        print("no runtime")
    while listed:
        show_runtime(listed)
        listed = listed.at("next_", "detail::listed_runtime")


class PlaitCommand(gdb.Command):
    """Commands for programs that use plait."""

    def __init__(self):
        super().__init__("plait", gdb.COMMAND_DATA, gdb.COMPLETE_COMMAND, True)


class DumpCommand(gdb.Command):
    """plait dump: every actor, its methods, and each chain of awaits down to what it waits for."""

    def __init__(self):
        super().__init__("plait dump", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        # Stopped in a C function, gdb would read names as C.
        before = gdb.parameter("language")
        gdb.execute("set language c++")
        try:
            show_all()
        finally:
            gdb.execute("set language " + before)


PlaitCommand()
DumpCommand()
