"""The workbench, `paribus serve`: the reports of a folder of studies, live, in a browser.

verb, server       what the command line asks for; the socket, and uvicorn on it
gate, connections  who may ask, how often, and how many connections are open
app                the addresses, each with the function that answers it
found, summaries   the studies in the folders, and the state of each by its files
live, rendering    reports, made in a process of their own when a study changed
overview, pages, launches, hosts, trend, now, making, metrics   what is shown
"""
