"""Reading real rating data and preparing it as the papers do: readers, known sets, filters, splits, statistics, a city."""
