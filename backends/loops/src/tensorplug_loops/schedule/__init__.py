"""From a group to statements for a device."""
