"""Jira, in the cloud and in one's own data center."""

from tocsin_plugins.ticketing.jira.cloud import JiraCloud
from tocsin_plugins.ticketing.jira.data_center import JiraDataCenter

__all__ = ["JiraCloud", "JiraDataCenter"]
