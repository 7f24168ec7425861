"""A command line program that does nothing: what a Python starts with."""

import argparse


def main() -> None:
    parser = argparse.ArgumentParser(prog="nothing", description="Does nothing.")
    parser.add_argument("--version", action="version", version="nothing 0.1.0")
    parser.add_argument("--json", action="store_true", help="as JSON")
    commands = parser.add_subparsers(dest="command")
    listing = commands.add_parser("list", help="list nothing")
    listing.add_argument("--all", action="store_true")
    parser.parse_args()


if __name__ == "__main__":
    main()
