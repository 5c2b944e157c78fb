"""What people come to do: the only place where analysis, estimation and specification meet."""
