"""What providers share that search the indices of a cluster: OpenSearch, Wazuh, Elasticsearch."""
