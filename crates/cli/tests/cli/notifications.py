"""Owns org.freedesktop.Notifications and writes what it is asked to show, one JSON object a
line. The first line is the address of the bus. Ends with its standard input."""

import json
import os
import sys

import dbus
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

NAME = "org.freedesktop.Notifications"


def write(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Desktop(dbus.service.Object):
    count = 0

    @dbus.service.method(NAME, in_signature="", out_signature="ssss")
    def GetServerInformation(self):
        return ("test desktop", "whosup", "7", "1.2")

    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, app, replaces, icon, summary, body, actions, hints, expires):
        self.count += 1
        write({"app": app, "replaces": int(replaces), "summary": summary, "body": body})
        return dbus.UInt32(self.count)


DBusGMainLoop(set_as_default=True)
loop = GLib.MainLoop()
bus = dbus.SessionBus()
name = dbus.service.BusName(NAME, bus, do_not_queue=True)
desktop = Desktop(bus, "/org/freedesktop/Notifications")
GLib.io_add_watch(0, GLib.IO_HUP | GLib.IO_IN, lambda *_: loop.quit())
write({"address": os.environ["DBUS_SESSION_BUS_ADDRESS"]})
loop.run()
