"""The dataset that ships with the package."""

from chunkcore.datasets.shipped import DatasetInfo, dataset_path, list_datasets, load_dataset

__all__ = ["DatasetInfo", "dataset_path", "list_datasets", "load_dataset"]
