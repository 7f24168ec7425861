"""Agents that whosup has an adapter for and this suite cannot run, with the reason."""

from agents.agent import Agent


class Crush(Agent):
    """Crush: read in its sources only."""

    name = "crush"
    id = "crush"
    not_run = "its npm package fetches the program from GitHub in an install script, which is not run here"


class Droid(Agent):
    """Droid: seen up to its login only."""

    name = "droid"
    id = "droid"
    not_run = "it needs an account: without a valid key it ends at its login, before it asks any model"
