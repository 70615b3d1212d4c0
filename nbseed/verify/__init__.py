"""Does a notebook give the same again? Fresh kernels run it, and what they gave is compared.

`inside` looks from within the notebook's kernel, `execution` drives it, `outputs` says which parts
of an output count, `compare` finds what differs and why, and `pages` words it.
"""
