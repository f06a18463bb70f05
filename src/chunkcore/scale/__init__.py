"""Indexes of folders: `folder_index`."""
