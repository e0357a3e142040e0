"""tensorplug: tensors whose hardware is a plugin."""
from tensorplug.ops.elementwise import *
from tensorplug.ops.creation import *
from tensorplug.autodiff import *
