"""Shared modules of providers that search indices: OpenSearch, Wazuh, Elasticsearch."""
