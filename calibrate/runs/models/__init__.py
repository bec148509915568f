"""The eight models, one file each, written out layer by layer so that a simulator can mirror them."""
