"""Jira Cloud and Jira Data Center."""

from tocsin_plugins.ticketing.jira.cloud import JiraCloud
from tocsin_plugins.ticketing.jira.data_center import JiraDataCenter

__all__ = ["JiraCloud", "JiraDataCenter"]
