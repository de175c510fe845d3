"""The one kind of error that a user causes and reads."""


class UserError(Exception):
    """Wrong use, told in one sentence: what is wrong where, what is allowed, the nearest valid name.

    The command line prints it on stderr and exits with 2; a screen shows it as a notice.
    """
