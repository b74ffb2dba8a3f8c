"""Metrics of the disks that a node writes to."""

from __future__ import annotations

from tocsin.node import open_node
from tocsin.settings import Settings


async def test_the_disk_of_the_archive_has_metrics(migrated_url, tmp_path):
    tmp_path.joinpath("plugins.toml").write_text(f'[retention]\narchive = "{tmp_path}"\n')
    settings = Settings(
        data_dir=tmp_path / "data",
        database_url=migrated_url.render_as_string(hide_password=False),
        plugins_file=tmp_path / "plugins.toml",
        encryption_key="A" * 43 + "=",
    )
    async with open_node(settings) as node:
        metrics = (await node.api.services.metrics.expose()).decode()
    assert 'tocsin_disk_free_bytes{folder="archive"}' in metrics
