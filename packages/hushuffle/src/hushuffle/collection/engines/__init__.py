"""The engines that randomize and shuffle reports: on this machine or on Spark."""
