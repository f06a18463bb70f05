"""Training of segmenters."""

from __future__ import annotations
