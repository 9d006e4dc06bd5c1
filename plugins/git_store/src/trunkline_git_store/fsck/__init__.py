"""Checks a memory root for damage by disks, power cuts or other programs, and repairs what can be repaired."""
