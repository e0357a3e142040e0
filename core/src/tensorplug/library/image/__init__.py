"""Images: resizing, cropping, warping, thresholds, boxes."""
