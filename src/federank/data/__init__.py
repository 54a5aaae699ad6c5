"""Reading real rating data and preparing it as the papers do: sources, known sets, filters, splits, statistics, a city.

Everything after the readers works on one type, `Interactions`. Nothing here knows of methods, clients or servers: data
calls only the checks, errors and files at the top of the project.
"""
