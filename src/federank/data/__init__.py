"""Reading real rating data and preparing it as the papers do: readers, filters, splits, statistics, a city."""
