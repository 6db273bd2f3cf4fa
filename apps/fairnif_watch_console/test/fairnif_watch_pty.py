"""Runs a program on a pseudo-terminal, as a person would: the tests' eyes and fingers.

    python3 fairnif_watch_pty.py ROWS COLUMNS STEPS PROGRAM [ARGUMENT ...]

STEPS is JSON, a list of: {"wait": TEXT} until the screen holds TEXT; {"keys": TEXT}; {"size": [ROWS,
COLUMNS]}; {"sleep": SECONDS}; {"signal": NUMBER} to the program; {"kill": PID}. Then the program is
waited for. Prints one JSON object: `screens', one after each step; `exit', its status or minus its
signal; `restored', is the terminal as it was (modes, and the program left the alternate screen with
the cursor on); `after', what it wrote to the ordinary screen; `error', if a step did not come true.
"""

import fcntl
import json
import os
import re
import select
import signal
import struct
import sys
import termios
import time

WAIT = 30


class Screen:
    """As much of a terminal as a program needs that draws whole screens."""

    def __init__(self, rows, columns):
        self.ordinary, self.alternate, self.cursor = "", False, True
        self.entered = False
        self.buffer = ""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.overflow = False

    def feed(self, text):
        self.buffer += text
        token = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[^\[]|[^\x1b]", re.S)
        while self.buffer:
            found = token.match(self.buffer)
            if not found:
                return
            self.buffer = self.buffer[found.end():]
            if found.group(2):
                self.command(found.group(1), found.group(2))
            elif not found.group(0).startswith("\x1b"):
                self.put(found.group(0))

    def command(self, argument, letter):
        if letter in "hl" and argument == "?1049":
            self.alternate = letter == "h"
            self.entered = self.entered or self.alternate
        elif letter in "hl" and argument == "?25":
            self.cursor = letter == "h"
        elif letter == "H":
            self.row = self.column = 0
        elif letter == "K" and self.row < self.rows:
            self.lines[self.row][self.column:] = [" "] * (self.columns - self.column)
        elif letter == "J":
            for row in range(self.row + 1, self.rows):
                self.lines[row] = [" "] * self.columns

    def put(self, char):
        if not self.alternate:
            self.ordinary += char
        elif char == "\r":
            self.column = 0
        elif char == "\n":
            self.row += 1
        elif self.row >= self.rows or self.column >= self.columns:
            self.overflow = True
        else:
            self.lines[self.row][self.column] = char
            self.column += 1

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)


def set_size(descriptor, rows, columns):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main(rows, columns, steps, *program):
    rows, columns = int(rows), int(columns)
    master, slave = os.openpty()
    set_size(slave, rows, columns)
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for descriptor in 0, 1, 2:
            os.dup2(slave, descriptor)
        os.execvp(program[0], program)
    screen = Screen(rows, columns)
    screens, error, status = [], None, None

    def read(seconds):
        ready, _, _ = select.select([master], [], [], seconds)
        if ready:
            screen.feed(os.read(master, 65536).decode("utf-8", "replace"))
        return bool(ready)

    for step in json.loads(steps):
        if "size" in step:
            screen.resize(*step["size"])
            set_size(slave, *step["size"])
        if "keys" in step:
            os.write(master, step["keys"].encode())
        if "signal" in step:
            os.kill(pid, step["signal"])
        if "kill" in step:
            os.kill(step["kill"], signal.SIGKILL)
        limit = time.time() + (WAIT if "wait" in step else step.get("sleep", 0.3))
        while time.time() < limit:
            read(0.1)
            if "wait" in step and step["wait"] in screen.text() + screen.ordinary:
                break
        else:
            if "wait" in step:
                error = f"never saw {step['wait']!r}"
        screens.append(screen.text())
        if error:
            os.kill(pid, signal.SIGKILL)
            break
    limit = time.time() + WAIT
    while status is None and time.time() < limit:
        read(0.1)
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(code)
    # What puts the terminal back may outlive the program for a moment.
    limit = time.time() + 3
    while time.time() < limit and (screen.alternate or termios.tcgetattr(slave) != before):
        read(0.1)
    while read(0.1):
        pass
    print(json.dumps({
        "screens": screens,
        "exit": status,
        "restored": termios.tcgetattr(slave) == before and not screen.alternate and screen.cursor,
        "entered": screen.entered,
        "overflow": screen.overflow,
        "after": screen.ordinary,
        "error": error,
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
