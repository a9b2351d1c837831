"""The two ways in which the app ends without a result."""


class Misuse(Exception):
    """An argument or an input that can't be used: names the value, the limit and the remedy."""


class Failure(Exception):
    """The program ran, or tried to, and gave no result."""
