"""The workbench: the reports of a folder of studies, live, in a browser."""
