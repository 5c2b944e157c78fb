"""Files and tables to model values: typed columns, conditions, public data sets, sketches."""
