"""Statuses of remote objects, such as tickets, and whether they match their incidents."""
