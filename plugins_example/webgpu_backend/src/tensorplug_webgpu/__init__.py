"""The backend ``webgpu`` of tensorplug: any GPU that Vulkan, Metal or Direct3D 12 reach."""
