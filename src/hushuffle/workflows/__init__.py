"""What people come to do: the only place where analysis, estimation and specification meet."""

from hushuffle.workflows.assess import assess

__all__ = ["assess"]
