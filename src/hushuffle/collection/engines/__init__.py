"""Where reports are drawn and shuffled: on this machine or on Spark."""
