"""The one kind of error that a user causes and reads."""


class UserError(Exception):
    """Wrong use: `message` says what is wrong (value and place), `hint` gives one action, or is empty.

    The command line prints both on stderr and exits with `exit_code`; a screen shows them in one notice.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message, self.hint = message, hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def at(self, place: str) -> "UserError":
        """The same error with the place that led to it."""
        return UserError(f"{place}: {self.message}", self.hint)


class SecretValue(UserError):
    """A setting that would store a secret with the run."""
