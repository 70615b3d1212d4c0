"""What variables hold, as digests: two runs are compared later without keeping any value.

`read` looks at the variables a cell is about to read, within a budget of time; `differences` says
in short sentences how what one of them held differs from what it held before. Equal digests mean
equal types, equal structure and equal bits: 1 is not 1.0 is not True, -0.0 is not 0.0, NaN is NaN.

What makes no difference: addresses, the order of a set, the order in which an object got its
attributes, line numbers and files of code, memory layout, hits of a cache, what a
``cached_property`` keeps, gradients, and how long something took (`attributes.is_a_time` has the
rule). What is not looked into is named in `Content.opaque`; what did not fit the budget in
`Contents.left_out`. Nothing of the user's is called, nothing is consumed, no generator moves.
"""

from .compare import differences
from .reader import read
from .record import Content, Contents

__all__ = ["Content", "Contents", "differences", "read"]
