"""Read files and tables as values of the model: typed columns, conditions, public data sets, sketches."""
