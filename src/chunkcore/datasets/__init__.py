"""Datasets: the shipped one, and downloads of public ones."""

from chunkcore.datasets.shipped import DatasetInfo, dataset_path, list_datasets, load_dataset

__all__ = ["DatasetInfo", "dataset_path", "list_datasets", "load_dataset"]
